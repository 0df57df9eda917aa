# frozen_string_literal: true

module Bench
  # Compares variants in rounds of short blocks. In a round each variant has two blocks, in a random order and then in
  # its reverse, so that neither drift nor what comes before favours one. Each round's ratio compares figures taken
  # within a moment; what disturbs single rounds is trimmed. With a tenth as long blocks and ten times as many rounds
  # the interval is several times narrower.
  module Pairs
    # The fraction of rounds that is left out at either end.
    TRIM = 0.1

    class << self
      # @param variants [Array<Symbol>]
      # @param random [Random]
      # @return [Array<Symbol>] the blocks of a round
      def order(variants, random)
        order = variants.shuffle(random: random)
        order + order.reverse
      end

      # @param rounds [Array<Hash{Symbol => Numeric}>] a figure of each variant
      # @return [Hash{Symbol => Float}] the ratio of two variants, with its 95 % interval as :low and :high
      def ratio(rounds, variant, base)
        logarithms = rounds.map { |round| Math.log(round.fetch(variant).fdiv(round.fetch(base))) }
        mean, margin = trimmed(logarithms)
        { ratio: Math.exp(mean), low: Math.exp(mean - margin), high: Math.exp(mean + margin) }
      end

      # "1.013 (1.008–1.018)"
      def text(ratio)
        format("%<ratio>.3f (%<low>.3f–%<high>.3f)", ratio)
      end

      private

      # The trimmed mean, and half of its interval (Tukey and McLaughlin): its variance is that of the values with the
      # extremes replaced by the last that are kept.
      def trimmed(values)
        sorted = values.sort
        cut = (sorted.size * TRIM).floor
        kept = sorted[cut...(sorted.size - cut)]
        return [mean(kept), Float::INFINITY] if kept.size < 2

        deviation = Math.sqrt(variance(sorted.map { |value| value.clamp(*kept.minmax) }))
        [mean(kept), quantile(kept.size - 1) * deviation * Math.sqrt(sorted.size) / kept.size]
      end

      def mean(values)
        values.sum / values.size
      end

      def variance(values)
        middle = mean(values)
        values.sum { |value| (value - middle)**2 } / (values.size - 1)
      end

      # The 97.5 % quantile of Student's t, by its expansion around that of the normal distribution: 2.26 for 9 degrees
      # of freedom.
      def quantile(degrees)
        1.96 + (2.372 / degrees) + (2.822 / (degrees**2))
      end
    end
  end
end
