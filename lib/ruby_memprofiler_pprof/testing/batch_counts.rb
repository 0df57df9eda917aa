# frozen_string_literal: true

module MemprofilerPprof
  module Testing
    # How many objects each batch of calls left behind, and what can be concluded from that.
    #
    # "Clearly less" means by more than three standard errors of a Poisson count, which leaks that occur at random have:
    # 3 * sqrt(n + 1) for n objects, the 1 being there for n = 0. For example, 16 objects are clearly less than an
    # expected 29, since 16 + 3 * sqrt(17) = 28.4, but not less than 28.
    # @api private
    class BatchCounts
      # Some batches that left less than this fraction of what the others did, per call, show that it is no leak.
      STEADY = 0.7
      STANDARD_ERRORS = 3
      # How many batches of a leak may have left nothing.
      EMPTY_BATCHES = 1
      private_constant :STEADY, :STANDARD_ERRORS, :EMPTY_BATCHES

      # @param calls [Array<Integer>] by batch
      # @param left [Array<Integer>] objects left behind, by batch
      def initialize(calls, left)
        @calls = calls
        @left = left
      end

      # @return [Array<Float>] objects per call, by batch
      def rates
        @left.zip(@calls).map { |left, calls| left.fdiv(calls) }
      end

      # @return [Float] objects per call, in all batches together
      def rate
        @left.sum.fdiv(@calls.sum)
      end

      # @param tolerated [Numeric] objects per call
      # @return [Boolean] whether more was left, and by nearly all batches
      def beyond?(tolerated)
        rate > tolerated && @left.count(&:zero?) <= EMPTY_BATCHES
      end

      # @param tolerated [Numeric] objects per call
      # @return [Boolean] whether the last batch clearly left less
      def ended?(tolerated)
        clearly_below?(tolerated, @calls.last, @left.last)
      end

      # A cache that is filling up, or something built once: the last batch clearly left less than those before it.
      # @return [Boolean]
      def fading?
        clearly_below?(STEADY * @left[..-2].sum / @calls[..-2].sum, @calls.last, @left.last)
      end

      # A cache that replaces its entries: of what the first half of the batches left, clearly less is there.
      # @return [Boolean]
      def replaced?
        half = @calls.size / 2
        clearly_below?(STEADY * @left.last / @calls.last, @calls.first(half).sum, @left.first(half).sum)
      end

      private

      def clearly_below?(rate, calls, left)
        left + (STANDARD_ERRORS * Math.sqrt(left + 1)) < rate * calls
      end
    end
  end
end
