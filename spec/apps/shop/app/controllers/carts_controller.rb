# frozen_string_literal: true

class CartsController < ApplicationController
  def show
    @lines = cart.lines
  end

  def update
    cart.add(Product.find(params[:product_id]))
    redirect_to cart_path
  end

  def destroy
    session.delete(:cart)
    redirect_to root_path
  end
end
