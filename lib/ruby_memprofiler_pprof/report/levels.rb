# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # How many objects of a site were alive in each profile of a series. Its halves and quarters are those of the time.
    #
    # @api private
    class Levels
      # @param times [Array<Float>] of the profiles, in seconds
      # @param values [Array<Numeric>] one for each
      def initialize(times, values)
        @times = times
        @values = values
        @size = values.size
      end

      # @return [Integer] how many profiles the last half has
      def last_half
        [@size - index_at(@size - (@size / 2)), Trend::LEAST].max
      end

      # @return [Integer] how many profiles the last three quarters have
      def warm
        @warm ||= [@size - index_at(@size - three_quarters), Trend::LEAST].max
      end

      # @return [Integer] the index of the profile in the middle
      def middle
        index_at(@size / 2)
      end

      # @return [Integer] that of the one in the middle of the last three quarters
      def middle_of_warm
        index_at(@size - three_quarters + (three_quarters / 2))
      end

      # @return [Integer] that of the first one in the last quarter
      def last_quarter
        index_at(@size - (@size / 4))
      end

      # @return [Float] the mean of three neighbours, so that a single outlier does not decide
      def near(index)
        index += @size if index.negative?
        mean(@values[[index - 1, 0].max..(index + 1)])
      end

      # @return [Boolean] whether there are more in the last quarter than ever before, but for the beginning
      def highest_at_last?
        last = @values[index_at(@size - [@size / 4, 1].max)..]
        early = @values[index_at(@size / 8)...-last_half]
        mean(last) > (early.max || @values.first)
      end

      # @param from [Integer] an index
      # @return [Float] the standard deviation of the levels from there on
      def scatter(from)
        deviation(@values[from..])
      end

      # @param from [Integer] an index
      # @return [Float] the same, also while they rise: that of neighbours' differences, divided by the root of 2
      def scatter_of_rise(from)
        deviation(@values[from..].each_cons(2).map { |one, other| other - one }) / Math.sqrt(2)
      end

      private

      # How many profiles the last three quarters would have at even intervals.
      def three_quarters
        [(@size * 0.75).round, Trend::LEAST].max
      end

      # @param even [Integer] the index of a profile in as many that were taken at even intervals
      # @return [Integer] that of the first of these that is as late, give or take half an interval
      def index_at(even)
        interval = (@times.last - @times.first) / (@times.size - 1)
        @times.index { |time| time - @times.first >= (even - 0.5) * interval } || (@times.size - 1)
      end

      def mean(values)
        values.sum.fdiv(values.size)
      end

      def deviation(values)
        mean = mean(values)
        Math.sqrt(values.sum { |value| (value - mean)**2 } / values.size)
      end
    end
  end
end
