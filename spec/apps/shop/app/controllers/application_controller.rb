# frozen_string_literal: true

class ApplicationController < ActionController::Base
  before_action { session[:visitor] ||= SecureRandom.uuid }
  helper_method :cart

  private

  def cart
    @cart ||= Cart.new(session[:cart] ||= {})
  end
end
