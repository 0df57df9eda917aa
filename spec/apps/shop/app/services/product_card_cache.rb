# frozen_string_literal: true

# A product's card is the costly part of every list, so its HTML is kept. It shows what the visitor has in the cart,
# hence one per visitor.
class ProductCardCache
  @cards = {}

  class << self
    def fetch(product, cart, view)
      key = [view.session[:visitor], product.cache_key_with_version, cart.quantity(product)].join("/")
      @cards[key] ||= view.render("products/card", product: product, quantity: cart.quantity(product))
    end
  end
end
