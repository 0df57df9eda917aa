# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # How many objects can have been born between two profiles, by site.
    #
    # @api private
    class Births
      # By what fraction of itself a profile's interval may differ from the time between two profiles.
      TOLERANCE = 0.05

      # @return [Boolean] whether the interval of `new` begins where `old` was taken, so that its allocations are those
      #   since `old`
      def self.consecutive?(old, new)
        return false unless old.time && new.time && new.duration.positive?

        (new.time - old.time - new.duration).abs <= [TOLERANCE * new.duration, 0.5].max
      end

      def initialize(old, new, by)
        name = Totals::OBJECTS.find { |candidate| new.sample_types.any? { |type| type.name == candidate } }
        return unless name

        @old, @new = [old, new].map { |profile| Counts.of(profile, by, name) }
        @bounds = [allocations(old, new, by), young(old, new, by, name)].compact
      end

      # @return [Float] (born + died) / (old + new), at most: the part of both profiles' objects that do not cancel out
      def turnover(site)
        return 1.0 unless @new

        key = Counts.key(site)
        old, new = [@old, @new].map { |counts| counts[key] }
        return 1.0 unless (old + new).positive?

        rise = new - old
        born = [[new, *@bounds.map { |bound| bound[key] }].min, rise, 0].max
        ((2.0 * born) - rise) / (old + new)
      end

      private

      def allocations(old, new, by)
        type = new.sample_types.map(&:name).find { |name| Snapshot::ALLOCATIONS.include?(name) }
        return unless type && Births.consecutive?(old, new)

        counts = Counts.of(new, by, type)
        counts unless counts.empty?
      end

      # Ages are rounded down, so that no object that was born in between is missing.
      def young(old, new, by, name)
        collections = [old, new].map { |profile| Totals.new(profile).collections }
        return unless collections.all? && Counts.ages?(new)

        Counts.of(new.tag(gc_age: ..(collections[1] - collections[0])), by, name)
      end
    end
  end
end
