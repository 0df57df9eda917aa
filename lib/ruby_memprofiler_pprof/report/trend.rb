# frozen_string_literal: true

require "ruby_memprofiler_pprof/report/statistics"

module MemprofilerPprof
  module Report
    # The straight line through a site's levels, and the chance that a site that does not grow would rise as steeply.
    #
    # Two things make levels rise by chance, and a site must be beyond both (the greater p-value counts):
    #
    # 1. Objects come and go one by one, and few of them are sampled. Of the sampled objects, b were born between the
    #    first and the last level and still live, d lived before and died; those in both cancel out. Where as many come
    #    as go, each of the b + d is one of either with probability 1/2, so that the p-value is that of at least b heads
    #    among b + d coins. Profiles tell b - d, and bound b: from above, so that the p-value is too great rather than
    #    too small. The line's rise stands for b - d; b + d is taken 6/5 times, which is by how much the variance of a
    #    fitted rise exceeds that of the difference of the ends of a random walk.
    # 2. The program's own ups and downs, such as garbage that waits for a collection. How far the levels lie from the
    #    line tells how great they are: Student's t of the slope, with (1 + r)/(1 - r) times its variance, r being the
    #    residuals' first autocorrelation (Bartlett 1935; corrected for its bias in short series, Kendall 1954).
    #
    # @api private
    class Trend
      # By how much the variance of a fitted rise exceeds that of the difference of the ends, for a random walk.
      FIT = 1.2
      # Greater autocorrelations than this cannot be told apart in a short series.
      GREATEST_CORRELATION = 0.9
      # Of levels; with fewer nothing can be said of how they scatter.
      LEAST = 4

      # @return [Float] per second
      attr_reader :slope
      # @return [Float] the p-value, 0..1
      attr_reader :p_value

      # @param times [Array<Float>] in seconds
      # @param levels [Array<Numeric>] estimates of how many objects, or bytes, are alive
      # @param weight [Float] what one sample stands for, in the levels' unit
      # @param born [Numeric] of the last level, the most that can have been born since the first
      # @param correlated [Boolean] whether the residuals' autocorrelation counts, which takes some levels to tell
      def initialize(times, levels, weight:, born:, correlated: true)
        @correlated = correlated
        @times = times
        @levels = levels
        @weight = weight
        fit
        @turnover = turnover(born)
        @p_value = [chance_of_sampling, chance_of_scatter].max
      end

      # @return [Float] what was gained from the first level to the last, by the line
      def rise
        @slope * (@times.last - @times.first)
      end

      # @return [Array(Float, Float)] the 95 % interval of the slope, per second
      def interval
        margin = [sampling_error * 1.96, @scatter * Statistics.student_quantile(degrees)].max
        [@slope - margin, @slope + margin]
      end

      private

      def degrees
        @levels.size - 2
      end

      # Least squares.
      def fit
        times, levels = [@times, @levels].map { |values| centered(values) }
        spread = times.sum { |time| time**2 }
        @slope = times.zip(levels).sum { |time, level| time * level } / spread
        residuals = times.zip(levels).map { |time, level| level - (@slope * time) }
        @scatter = Math.sqrt(residuals.sum { |each| each**2 } / degrees / spread * inflation(residuals))
      end

      def centered(values)
        mean = values.sum.fdiv(values.size)
        values.map { |value| value - mean }
      end

      def inflation(residuals)
        squares = residuals.sum { |each| each**2 }
        return 1.0 unless @correlated && squares.positive?

        size = residuals.size
        measured = residuals.each_cons(2).sum { |one, next_one| one * next_one } / squares
        correlation = ((measured + (2.0 / size)) / (1 - (4.0 / size))).clamp(0, GREATEST_CORRELATION) if size > 4
        correlation ||= GREATEST_CORRELATION
        (1 + correlation) / (1 - correlation)
      end

      # How many were born and how many died, at most.
      def turnover(born)
        born = [born, rise, 0].max
        FIT * ((2 * born) - rise)
      end

      def sampling_error
        Math.sqrt(@weight * @turnover) / (@times.last - @times.first)
      end

      def chance_of_sampling
        coins = @turnover / @weight
        Statistics.coin_tail((coins + (rise / @weight)) / 2, coins)
      end

      def chance_of_scatter
        return @slope.positive? ? 0.0 : 1.0 unless @scatter.positive?

        Statistics.student_tail(@slope / @scatter, degrees)
      end
    end
  end
end
