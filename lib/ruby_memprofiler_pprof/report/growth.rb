# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # One site in a series of profiles.
    #
    # The last three quarters of the series tell whether it grows at all, since programs warm up first. That it still
    # grows in the last half, and has more in the last quarter than it ever had in the first half, tells a leak from a
    # cache that has filled. And since what is old and dead stays until the next major collection, it must also have
    # grown between the profiles that were the first after one, the last of which has the most (where there are eight or
    # more, the last quarter has more than any of the first half).
    class Growth
      # The most that p-values may be, of the site by itself.
      SUSPICIOUS = 0.01
      # How many standard deviations of its later levels a site must have grown by to have settled.
      SCATTER = 3
      # Sites that rest on fewer samples cannot be told from luck.
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
      # @param name [String] the site's
      # @param contiguous [Boolean] whether the intervals of the profiles leave no gap
      # @param clean [Array<Integer>, nil] which profiles were the first after a major collection; nil if not known
      def initialize(snapshots, name, contiguous:, clean:)
        @clean = clean
        @times = snapshots.map(&:time)
        @weight = snapshots.map(&:weight).max
        look_up(snapshots, name, contiguous)
        @trend = fit(warm) if testable?
      end

      # @return [Boolean] whether there are enough samples and profiles
      def testable?
        @objects.size >= Trend::LEAST && @objects.max >= FEW * @weight
      end

      # @return [Boolean] whether it would be called growing if it were the only site
      def grows?
        @trend.p_value < SUSPICIOUS && late? && proven?
      end

      # @return [Array(Float, Float, Float)] bytes per second: the estimate, and the 95 % interval from and to
      def rate
        @rate ||= begin
          bytes = Trend.new(@times.last(warm), @bytes.last(warm), weight: @weight * mean_size,
                                                                  born: born(warm) * mean_size)
          [bytes.slope, *bytes.interval]
        end
      end

      # @return [Boolean] whether the last half grows, and the last quarter has more than there ever was before
      def late?
        half = [@objects.size / 2, Trend::LEAST].max
        last = @objects.last([@objects.size / 4, 1].max)
        early = @objects[(@objects.size / 8)...-half]
        fit(half, correlated: false).p_value < SUSPICIOUS && last.sum.fdiv(last.size) > (early.max || @objects.first)
      end

      # @return [Boolean] whether it grew from one major collection to the other; true if there were none to tell
      def proven?
        return true if @clean.nil? || @clean.size < 2

        levels = @objects.values_at(*@clean)
        first = @clean.index { |index| index >= @objects.size - warm }
        return false unless first && first < levels.size - 1 && record?(levels)

        rose?(levels.last - levels[first], born(@objects.size - @clean[first]))
      end

      # @return [Boolean] whether it grew by more than it has scattered since, and hardly did so in the last half
      def settled?
        middle = @objects.size / 2
        early = level(middle) - @objects.first
        late = level(-1) - level(middle)
        return false unless early.positive? && late < early / 4

        rose?(early, level(middle)) && early > SCATTER * scatter(@objects[middle..])
      end

      # @return [Boolean] whether the second half of the last three quarters grew significantly less than the first
      def slowing?
        start = @objects.size - warm
        middle = start + (warm / 2)
        first, second = [[start, middle], [middle, -1]].map { |from, to| (level(to) - level(from)) / @weight }
        second < first / 2 && Statistics.coin_tail(first, first + [second, 0].max) < SUSPICIOUS
      end

      private

      def look_up(snapshots, name, contiguous)
        sites = snapshots.map { |snapshot| snapshot.sites[name] }
        @site = sites.compact.last
        @retained = sites.last ? sites.last.flat : Profile::Estimate.new(0, 0.0, 0.0, 0.0, 0.0).freeze
        @objects = snapshots.map { |snapshot| snapshot.objects(name) }
        @bytes = snapshots.map { |snapshot| snapshot.bytes(name) }
        @allocations = snapshots.map { |snapshot| snapshot.allocations(name) } if contiguous
      end

      def warm
        [(@objects.size * 0.75).round, Trend::LEAST].max
      end

      def fit(size, correlated: true)
        Trend.new(@times.last(size), @objects.last(size), weight: @weight, born: born(size), correlated: correlated)
      end

      # The most that can have been born after the first of the last `size` profiles and still live.
      def born(size)
        allocated = @allocations&.last(size - 1)
        allocated&.all? ? [@objects.last, allocated.sum].min : @objects.last
      end

      def record?(levels)
        return levels.last > levels[0...-1].max if levels.size < Leaks::LEAST

        last = levels.last(levels.size / 4)
        last.sum.fdiv(last.size) > levels.first(levels.size / 2).max
      end

      # Whether sampling alone hardly explains it, see {Trend}.
      def rose?(rise, born)
        born = [born, rise].max
        Statistics.coin_tail(born / @weight, ((2 * born) - rise) / @weight) < SUSPICIOUS
      end

      # The standard deviation.
      def scatter(levels)
        mean = levels.sum.fdiv(levels.size)
        Math.sqrt(levels.sum { |level| (level - mean)**2 } / levels.size)
      end

      # Of three neighbours, so that one odd level does not decide.
      def level(index)
        index += @objects.size if index.negative?
        near = @objects[[index - 1, 0].max..(index + 1)]
        near.sum.fdiv(near.size)
      end

      def mean_size
        @bytes.sum.fdiv([@objects.sum, 1].max)
      end
    end
  end
end
