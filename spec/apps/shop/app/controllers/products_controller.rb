# frozen_string_literal: true

class ProductsController < ApplicationController
  def index
    @categories = Rails.cache.fetch("categories", expires_in: 5.minutes) { Category.order(:name).to_a }
    @products = Product.listed.page(params[:page])
    @products = @products.where(category_id: params[:category]) if params[:category]
  end

  def show
    @product = Product.includes(:reviews).find(params[:id])
    RecentlyViewed.add(session[:visitor], @product)
    @recently_viewed = RecentlyViewed.by(session[:visitor])
  end
end
