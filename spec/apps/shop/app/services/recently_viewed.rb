# frozen_string_literal: true

# The products that the latest visitors looked at last.
class RecentlyViewed
  VISITORS = 25
  PRODUCTS = 6

  @visitors = {}
  @lock = Mutex.new

  class << self
    def add(visitor, product)
      @lock.synchronize do
        seen = @visitors.delete(visitor) || []
        @visitors[visitor] = [product, *seen.reject { |other| other == product }].first(PRODUCTS)
        @visitors.shift if @visitors.size > VISITORS
      end
    end

    def by(visitor)
      @lock.synchronize { @visitors.fetch(visitor, []).drop(1) }
    end
  end
end
