# frozen_string_literal: true

require "ruby_memprofiler_pprof/report/statistics"

module MemprofilerPprof
  module Report
    # The straight line through a site's levels (least squares) and its p-value: the probability that a site which does
    # not grow would rise as steeply. Levels are Horvitz-Thompson estimates: each sample stands for `weight` objects.
    #
    # Two things make levels rise by chance. The p-value is the greater one of both, so that neither explains the rise.
    #
    # 1. Sampling. Of the sampled objects, b were born after the first level and are alive at the last one; d were alive
    #    at the first one and have died. Those that are alive at both cancel out. Where as many are born as die, each of
    #    the b + d is one or the other with probability 1/2, so that the p-value is that of at least b heads in b + d
    #    tosses of a coin (the exact comparison of two Poisson counts: Przyborowski and Wilenski, Homogeneity of results
    #    in testing samples from Poisson series, 1940). Profiles give b - d, which is the rise, and an upper bound of b,
    #    so that the p-value is rather too great than too small. The rise is that of the line, which for a random walk
    #    varies more than the last level minus the first: its variance is 6/5 as great (Durlauf and Phillips, Trends
    #    versus random walks in time series analysis, 1988). That is why b + d is multiplied by 6/5. Where the last
    #    level minus the first is less than the line's rise, as where the last level is below the line, d is b minus
    #    the former.
    #
    #    Example: the line rises from 0 to 1000 objects, a sample stands for 100, and at most 1000 were born since. So
    #    b - d = 10 and b = 10. That makes 6/5 (2 * 10 - 10) = 12 tosses, with (12 + 10) / 2 = 11 heads or more, for
    #    which the probability is (12 + 1) / 2^12 = 0.0032.
    #
    #    Samples that were taken in windows come together: a coin decides about several at once. The variance of b - d
    #    is b + d for independent samples. If the one that the sums by group of windows show is greater, it takes the
    #    place of b + d, and half of what it and the rise make together that of b.
    #
    #    Example: in the same rise the 10 samples are all of one group. The variance is 10^2. That makes 6/5 100 = 120
    #    tosses, with (120 + 10) / 2 = 65 heads or more, for which the probability is 0.206.
    #
    # 2. The program's own ups and downs, such as garbage that waits for a collection. How far the levels lie from the
    #    line shows how great they are: Student's t test of the slope.
    #
    #    Example: levels of 0, 2, 1, 3 and 4, a second apart. The slope is 0.9, the residuals' squares sum up to 1.9 and
    #    those of the centred times to 10, so that the slope's standard error is sqrt(1.9 / (5 - 2) / 10) = 0.2517. With
    #    t = 0.9 / 0.2517 = 3.576 and 3 degrees of freedom the p-value is 0.019. Of t, 95 % lie within 3.182, so that
    #    the interval is 0.9 - 0.8 to 0.9 + 0.8.
    #
    #    Ups and downs that last longer than one interval count for more: the variance is multiplied by
    #    (1 + r) / (1 - r), r being the residuals' first autocorrelation (Bartlett, Some aspects of the time-correlation
    #    problem, 1935). In residuals of a line through n levels it comes out too small by (2 + 4 r) / n (Kendall, Note
    #    on bias in the estimation of autocorrelation, 1954), which is corrected.
    #
    #    Example: 16 levels that lie 1 above (+) or below (-) the line, in the order ++----++++----++. Of the products
    #    of neighbours 11 are 1 and 4 are -1, so that r comes out as 7/16, which is corrected to
    #    (7/16 + 2/16) / (1 - 4/16) = 0.75. The variance is (1 + 0.75) / (1 - 0.75) = 7 times as great.
    #
    # @api private
    class Trend
      # The variance of a fitted rise, divided by that of the last level minus the first, for a random walk.
      FIT = 1.2
      # Greater autocorrelations than this cannot be distinguished in a short series.
      GREATEST_CORRELATION = 0.9
      # The fewest levels. With fewer, nothing can be said of how they scatter.
      LEAST = 4

      # @return [Float] per second
      attr_reader :slope
      # @return [Float] the p-value, 0..1
      attr_reader :p_value

      # @param times [Array<Float>] in seconds
      # @param levels [Array<Numeric>] estimates of how many objects, or bytes, are alive
      # @param weight [Float] what one sample stands for, in the levels' unit
      # @param born [Numeric] the most of the last level that can have been born since the first one
      # @param window_variance [Float] that of the last level minus the first, as far as it was sampled in windows
      # @param correlated [Boolean] whether the residuals' autocorrelation counts, which takes some levels to estimate
      def initialize(times, levels, weight:, born:, window_variance: 0.0, correlated: true)
        @correlated = correlated
        @times = times
        @levels = levels
        @weight = weight
        fit
        @turnover = turnover(born, window_variance)
        @p_value = [chance_of_sampling, chance_of_scatter].max
      end

      # @return [Float] by how much the line rises from the first level to the last
      def rise
        @slope * (@times.last - @times.first)
      end

      # @return [Array(Float, Float)] the 95 % interval of the slope, per second
      def interval
        margin = [sampling_error * 1.96, @standard_error * Statistics.student_quantile(degrees)].max
        [@slope - margin, @slope + margin]
      end

      private

      def degrees
        @levels.size - 2
      end

      # The slope, by least squares, and its standard error.
      def fit
        times, levels = [@times, @levels].map { |values| centered(values) }
        spread = times.sum { |time| time**2 }
        @slope = times.zip(levels).sum { |time, level| time * level } / spread
        residuals = times.zip(levels).map { |time, level| level - (@slope * time) }
        @standard_error = Math.sqrt(residuals.sum { |each| each**2 } / degrees / spread * inflation(residuals))
      end

      def centered(values)
        mean = values.sum.fdiv(values.size)
        values.map { |value| value - mean }
      end

      # By what autocorrelation multiplies the variance.
      def inflation(residuals)
        squares = residuals.sum { |each| each**2 }
        return 1.0 unless @correlated && squares.positive?

        size = residuals.size
        measured = residuals.each_cons(2).sum { |one, next_one| one * next_one } / squares
        correlation = ((measured + (2.0 / size)) / (1 - (4.0 / size))).clamp(0, GREATEST_CORRELATION) if size > 4
        correlation ||= GREATEST_CORRELATION
        (1 + correlation) / (1 - correlation)
      end

      # b + d: how many were born and how many died, at most.
      def turnover(born, window_variance)
        difference = [@levels.last - @levels.first, rise].min
        born = [born, rise, 0].max
        FIT * [(2 * born) - difference, window_variance / @weight].max
      end

      # The standard error of the slope by sampling alone.
      def sampling_error
        Math.sqrt(@weight * @turnover) / (@times.last - @times.first)
      end

      def chance_of_sampling
        coins = @turnover / @weight
        Statistics.binomial_tail((coins + (rise / @weight)) / 2, coins)
      end

      def chance_of_scatter
        return @slope.positive? ? 0.0 : 1.0 unless @standard_error.positive?

        Statistics.student_tail(@slope / @standard_error, degrees)
      end
    end
  end
end
