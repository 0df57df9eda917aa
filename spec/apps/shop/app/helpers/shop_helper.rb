# frozen_string_literal: true

module ShopHelper
  def price(cents)
    number_to_currency(cents.fdiv(100))
  end
end
