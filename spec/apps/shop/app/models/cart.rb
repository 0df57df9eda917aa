# frozen_string_literal: true

# What a visitor is about to buy: product ids and quantities, kept in the session.
class Cart
  Line = Struct.new(:product, :quantity) do
    def total_cents
      product.price_cents * quantity
    end
  end

  def initialize(quantities)
    @quantities = quantities
  end

  def add(product)
    @quantities[product.id.to_s] = quantity(product) + 1
  end

  def quantity(product)
    @quantities.fetch(product.id.to_s, 0)
  end

  def lines
    Product.where(id: @quantities.keys).order(:id).map { |product| Line.new(product, quantity(product)) }
  end
end
