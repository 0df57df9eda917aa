# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # How one site has grown in a series of profiles. It is growing if each of these holds, with p-values below 1 %:
    #
    # Quarters and halves are those of the time, so that a series may be denser towards its end ({FileSeries}).
    #
    # 1. The {Trend} of the last three quarters rises. The first quarter does not count, since programs warm up.
    # 2. The trend of the last half rises, too, and the mean of the last quarter is above all of the first half: unlike
    #    that of a cache that has filled.
    # 3. It has grown from one major garbage collection to another, since old objects that have died stay until the next
    #    one. Of the profiles that were the first after a major collection, the last has the most (where there are eight
    #    or more, the mean of their last quarter is above all of their first half), and sampling alone hardly explains
    #    the rise. The test is that of {Trend}, without a line: at least b heads in b + d tosses of a coin.
    #
    #    Example: from 0 samples to 7, all of which were born meanwhile, b = 7 and d = 0. The probability of 7 heads in
    #    7 tosses is 1/2^7 = 0.8 %, so that it has grown; that of 6 in 6 is 1.6 %, which is too much. From 1 sample to
    #    9, b may be 9, and then one has died: the probability of at least 9 heads in 10 tosses is
    #    (10 + 1) / 2^10 = 1.07 %, which is too much, too.
    #
    # A site that grows is slowing if it gained significantly less in the second half of the last three quarters than in
    # the first: less than half, and if both had gained as much, each of the gained objects would be in either with
    # probability 1/2. Example: 15 and 3 samples. The probability of at least 15 heads in 18 tosses is
    # (816 + 153 + 18 + 1) / 2^18 = 0.4 %, so that it is slowing. It is slowing, too, if the last quarter gained so much
    # less than half of the two before, and by more than 3 standard deviations of a level, as a cache that has just
    # filled.
    #
    # With windows the number of tosses is as great as the variance of b - d, see {Trend}.
    #
    # All of that is tried in time and, where profiles say how many objects the program has allocated, by {Progress}: a
    # leak may keep pace with either. It is enough if one of the two shows growth; as there are two, the p-value is
    # twice the smaller one (Bonferroni).
    #
    # A site that does not grow has settled if the rise of the first half is no chance by the test of 3, is more than 3
    # standard deviations of the later levels, and more than four times the rise of the second half.
    class Growth
      # The greatest p-value that is significant, for this site alone.
      SUSPICIOUS = 0.01
      # How many standard deviations of its later levels a site must have grown by to have settled.
      SCATTER = 3
      # What is based on fewer samples than this may be chance.
      FEW = 10

      # @return [Profile::Site] as in the last profile that has it
      attr_reader :site
      # @return [Profile::Estimate] bytes retained in the last profile
      attr_reader :retained
      # @return [Array<Integer>] objects alive in each profile
      attr_reader :objects
      # @return [Array<Integer>] bytes alive in each profile
      attr_reader :bytes
      # @return [Trend] of objects, in the last three quarters
      attr_reader :trend

      # @param snapshots [Array<Snapshot>] in order of time
      # @param key [Array] the site's, see {Snapshot#sites}
      # @param contiguous [Boolean] whether the intervals of the profiles leave no gap
      # @param clean [Array<Integer>, nil] which profiles were the first after a major collection; nil if not known
      # @param progress [Progress, nil] the same series by the program's progress
      def initialize(snapshots, key, contiguous:, clean:, progress: nil)
        @clean = clean
        @by_progress = progress&.growth(key, contiguous: contiguous, clean: clean)
        @times = snapshots.map(&:time)
        @weight = snapshots.map(&:weight).max
        look_up(snapshots, key, contiguous)
        @levels = Levels.new(@times, @objects)
        @trend = fit(warm) if testable?
      end

      # @return [Boolean] whether there are enough samples and profiles
      def testable?
        @objects.size >= Trend::LEAST && @objects.max >= FEW * @weight
      end

      # @return [Float] the probability that it would seem to rise as steeply if it did not, if it is the only site
      def p_value
        [tests.size * shown_by.trend.p_value, 1.0].min
      end

      # @return [Boolean] whether it would be called growing if it were the only site
      def grows?
        p_value < SUSPICIOUS && shown_by.lasts?
      end

      # @return [Boolean] whether it has grown until the end, and by what is no garbage
      # @api private
      def lasts?
        late? && proven?
      end

      # @return [Integer] bytes from the first profile to the last
      # @api private
      def gain
        @bytes.last - @bytes.first
      end

      # @return [Array(Float, Float, Float)] bytes per second: the estimate, and the 95 % interval from and to
      def rate
        @rate ||= begin
          bytes = Trend.new(@times.last(warm), @bytes.last(warm),
                            weight: @weight * mean_size * spread, born: born(warm) * mean_size,
                            window_variance: window_variance(-warm, -1) * (mean_size**2))
          [bytes.slope, *bytes.interval]
        end
      end

      # @return [Boolean] whether it still grows in the last half, and has more in the last quarter than ever before
      def late?
        fit(@levels.last_half, correlated: false).p_value < SUSPICIOUS && highest?
      end

      # @return [Boolean] whether it has more in the last quarter than ever before, but for the beginning, and after the
      #   last major collection, too
      def highest?
        return false unless @clean.nil? || @clean.size < 2 || record?(@objects.values_at(*@clean))

        @levels.highest_at_last?
      end

      # @return [Boolean] whether it has grown from one major collection to another; true if there were not two
      def proven?
        return true if @clean.nil? || @clean.size < 2

        levels = @objects.values_at(*@clean)
        first = @clean.index { |index| index >= @objects.size - warm }
        return false unless first && first < levels.size - 1 && record?(levels)

        rose?(levels.last - levels[first], born(@objects.size - @clean[first]), @clean[first], @clean.last)
      end

      # @return [Boolean] whether it has grown in the first half, by more than it scatters since, and hardly afterwards
      def settled?
        middle = @levels.middle
        early = @levels.near(middle) - @objects.first
        late = @levels.near(-1) - @levels.near(middle)
        return false unless early.positive? && late < early / 4

        rose?(early, @levels.near(middle), 0, middle) && early > SCATTER * @levels.scatter(middle)
      end

      # @return [Boolean] whether it gained significantly less in the second half of the last three quarters, or in the
      #   last quarter
      def slowing?
        shown_by.bent?
      end

      # @return [Boolean] the same for this series alone
      # @api private
      def bent?
        start = @objects.size - warm
        slower?(start, @levels.middle_of_warm) || stopped?(start)
      end

      private

      # In time, and by progress.
      def tests
        [self, *@by_progress]
      end

      # Which of them shows the growth, or is the nearest to it.
      def shown_by
        return self unless @by_progress

        @shown_by ||= tests.min_by { |growth| [growth.lasts? ? 0 : 1, growth.trend.p_value] }
      end

      def look_up(snapshots, key, contiguous)
        sites = snapshots.map { |snapshot| snapshot.sites[key] }
        @site = sites.compact.last
        @retained = sites.last ? sites.last.flat : Profile::Estimate.of([0, 0.0, 0.0], false)
        @objects, @bytes, @windows = %i[objects bytes windows].map do |figure|
          snapshots.map { |snapshot| snapshot.public_send(figure, key) }
        end
        @allocations = snapshots.map { |snapshot| snapshot.allocations(key) } if contiguous
      end

      # How many profiles the last three quarters have.
      def warm
        @levels.warm
      end

      def fit(size, correlated: true)
        Trend.new(@times.last(size), @objects.last(size), weight: @weight, born: born(size), correlated: correlated,
                                                          window_variance: window_variance(-size, -1))
      end

      # The most that can have been born after the first of the last `size` profiles and be alive at the end.
      def born(size)
        allocated = @allocations&.last(size - 1)
        allocated&.all? ? [@objects.last, allocated.sum].min : @objects.last
      end

      def record?(levels)
        return levels.last > levels[0...-1].max if levels.size < Leaks::LEAST

        last = levels.last(levels.size / 4)
        last.sum.fdiv(last.size) > levels.first(levels.size / 2).max
      end

      # Whether the gain from the middle to the end is less than half of that from the start to the middle, which took
      # `times` as long, and by more than `scatter`.
      def slower?(start, middle, times = 1, scatter = 0)
        first = (@levels.near(middle) - @levels.near(start)) / times
        second = @levels.near(-1) - @levels.near(middle)
        least = [second, 0].max
        (first / 2) - second > scatter && significant?(first - least, first + least, bend_variance(start, middle))
      end

      # Whether it has hardly gained anything in the last quarter, by more than levels scatter.
      def stopped?(start)
        last_quarter = @levels.last_quarter
        return false if @objects.size - last_quarter < Trend::LEAST

        slower?(start, last_quarter, 2, SCATTER * @levels.scatter_of_rise(start))
      end

      # Whether it has risen from one profile to another by more than sampling alone explains.
      def rose?(rise, born, from, to)
        significant?(rise, (2 * [born, rise].max) - rise, window_variance(from, to))
      end

      # Whether a difference of two counts of objects is hardly due to sampling. `sum` is that of both counts.
      def significant?(difference, sum, window_variance)
        sum = [sum, window_variance / @weight].max
        Statistics.binomial_tail((sum + difference) / 2.0 / @weight, sum / @weight) < SUSPICIOUS
      end

      # The variance of the rise of what was sampled in windows.
      def window_variance(from, to)
        WindowGroups.variance(window_rises(from, to))
      end

      # The same of the difference of two rises, the second of which is to the end.
      def bend_variance(start, middle)
        WindowGroups.variance(WindowGroups.subtract(window_rises(start, middle), window_rises(middle, -1)))
      end

      def window_rises(from, to)
        WindowGroups.subtract(@windows[to], @windows[from])
      end

      # By what different sizes multiply the variance of bytes.
      def spread
        variance = @retained.variance.to_f - @retained.window_variance.to_f
        equal = (@weight - 1) * @retained.value * mean_size
        equal.positive? ? [variance / equal, 1.0].max : 1.0
      end

      def mean_size
        @bytes.sum.fdiv([@objects.sum, 1].max)
      end
    end
  end
end
