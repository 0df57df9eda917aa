# frozen_string_literal: true

class Product < ApplicationRecord
  PER_PAGE = 24

  belongs_to :category
  has_many :reviews, dependent: :destroy

  scope :listed, -> { includes(:reviews).order(:id) }
  scope :page, ->(number) { limit(PER_PAGE).offset(PER_PAGE * [number.to_i - 1, 0].max) }

  def related
    category.products.listed.where.not(id: id).limit(12)
  end

  def rating
    reviews.sum(&:rating).fdiv(reviews.size).round
  end
end
