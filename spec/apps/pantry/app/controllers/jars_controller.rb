# frozen_string_literal: true

class JarsController < ActionController::Base
  def index
    Jar.fill
    render plain: Process.pid
  end

  def nowhere
    head :not_found
  end
end
