# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # How many objects can have been born between two profiles, by site; and so, how uncertain a difference is.
    #
    # @api private
    class Births
      # By what fraction of itself a profile's interval may differ from the time between two profiles. Clocks and busy
      # machines are imprecise, so it is half a second at least; but so little that no profile can be missing between.
      TOLERANCE = 0.05
      MOST = 0.25
      private_constant :MOST

      # @return [Boolean] whether the interval of `new` begins where `old` was taken, so that its allocations are those
      #   since `old`, if they are of the same process
      def self.consecutive?(old, new)
        return false unless old.time && new.time && new.duration.positive?

        tolerance = [[TOLERANCE * new.duration, 0.5].max, MOST * new.duration].min
        (new.time - old.time - new.duration).abs <= tolerance
      end

      def initialize(old, new, by)
        name = (Totals::OBJECTS & new.sample_types.map(&:name)).first
        totals = [old, new].map { |profile| Totals.new(profile) }
        # Of different processes, as far as the profiles say.
        return if name.nil? || totals.filter_map(&:process).uniq.size > 1

        @old, @new = [old, new].map { |profile| Counts.of(profile, by, name) }
        @bounds = [allocations(old, new, by), young(new, by, name, totals)].compact
      end

      # @param site [Profile::Site]
      # @param old [Float] the variance of what the old profile has of the site
      # @param new [Float] that of the new one
      # @return [Float] the variance of the difference, at most: see {Difference}
      def variance(site, old, new)
        both = old + new
        before, after = [@old, @new].map { |counts| counts ? counts[Counts.key(site)] : 0 }
        return both unless (before + after).positive?

        rise = after - before
        each = both / (before + after)
        turnover = ((2 * born(site, rise, after)) - rise) * each
        changed = (new - old - (rise * each)).abs
        [turnover + changed, both].min
      end

      private

      # At most.
      def born(site, rise, after)
        [[after, *@bounds.map { |bound| bound[Counts.key(site)] }].min, rise, 0].max
      end

      def allocations(old, new, by)
        type = new.sample_types.map(&:name).find { |name| Snapshot::ALLOCATIONS.include?(name) }
        return unless type && Births.consecutive?(old, new)

        counts = Counts.of(new, by, type)
        counts unless counts.empty?
      end

      # Ages are rounded down, so that no object that was born in between is missing.
      def young(new, by, name, totals)
        collections = totals.map(&:collections)
        # There are fewer if the profiles are in reverse order.
        return unless collections.all? && collections.reduce(:<=) && Counts.ages?(new)

        Counts.of(new.tag(gc_age: ..(collections[1] - collections[0])), by, name)
      end
    end
  end
end
