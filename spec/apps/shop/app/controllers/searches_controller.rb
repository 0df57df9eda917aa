# frozen_string_literal: true

class SearchesController < ApplicationController
  def show
    @query = params[:q].to_s
    @products = Product.listed.where(id: SearchIndex.search(@query)).page(params[:page])
  end
end
