# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # What {Leaks} needs to know of one profile.
    class Snapshot
      # What allocations are called, in this gem's profiles and in those with Go's names.
      ALLOCATIONS = %w[allocations alloc_objects].freeze
      # Groupings in which frames of libraries are left out by default.
      PLACES = %i[method line file].freeze
      # Greater weights are no counts of objects.
      MOST = 2**53
      private_constant :MOST

      # @return [Float] seconds since 1970
      attr_reader :time
      # @return [Float] seconds
      attr_reader :duration
      # @return [Totals]
      attr_reader :totals
      # @return [Float] how many objects a sample stands for at most
      attr_reader :weight
      # @return [Hash{Array => Profile::Site}] what is alive, by the site's name and file: bytes
      attr_reader :sites

      # @param profile [Profile]
      # @param by [Symbol] one of Profile::Aggregation::GROUPINGS
      # @param libraries [Boolean] whether what gems and Ruby allocate counts for them, rather than for the line of the
      #   program that called them
      # @param time [Time, Numeric, nil] when it was taken, if the profile does not say
      # @param totals [Totals] of all that the profile was before a selection was made
      # @raise [ProfileError] if it is not a profile of live objects, has no time, or does not say how it was sampled
      def initialize(profile, by: :line, libraries: false, time: nil, totals: Totals.new(profile))
        @time = (time || profile.time || raise(ProfileError, "the profile has no time")).to_f
        @duration = profile.duration
        @totals = totals
        types = [Totals::OBJECTS, Totals::BYTES].map { |names| type(profile, names) }
        raise ProfileError, "the profile is not one of live objects" unless types.all?

        @weight = weight_of(profile)
        profile = profile.without_libraries if PLACES.include?(by) && !libraries
        count(profile, by, *types)
      end

      # @return [Array(Integer, Float), Array(Integer, nil), nil] as {Totals#process}
      def process
        @totals.process
      end

      # A profile that was written without the GVL lacks contents and ages, which would look like a change.
      # @return [Boolean] whether it can be compared with others, of the process that it names
      def in_series?
        !process.nil? && !@totals.incomplete?
      end

      # @return [MemprofilerPprof::Memory, nil] where the memory was; nil if the profile does not say
      def memory
        @totals.memory
      end

      # @param site [Array(String, String), Array(String, nil)] the site's name and file
      # @return [Integer] how many objects are alive
      def objects(site)
        @objects[site]
      end

      # @return [Array<Float>, nil] how many of them were sampled in windows, by group of windows; nil if none
      def windows(site)
        @windows[site]
      end

      # @return [Integer] bytes of what is alive
      def bytes(site)
        @sites[site]&.flat&.value || 0
      end

      # @return [Integer, nil] how many objects were allocated in the interval; nil if that is not known
      def allocations(site)
        @allocations && @allocations[site]
      end

      private

      def weight_of(profile)
        texts = profile.comments.filter_map { |comment| comment[/\Agreatest_weight=([\d.e+]+)/, 1] }
        weights = texts.map(&:to_f).reject { |weight| weight > MOST }
        raise ProfileError, "the profile does not say how it was sampled (greatest_weight)" if weights.empty?

        weights.max
      end

      def count(profile, by, objects, bytes)
        @allocations = allocated(profile, by)
        # Objects that have not survived a collection yet may be garbage.
        proven = Counts.ages?(profile) ? profile.tag(gc_age: 1..) : profile
        counted = proven.top(by: by, type: objects)
        @objects = Counts.sum(counted)
        @windows = Counts.windows(counted)
        sites = proven.top(by: by, type: bytes).select { |site| site.flat.value.positive? }
        @sites = sites.to_h { |site| [Counts.key(site), site] }
      end

      # A profile without any allocations was most likely taken with `track_allocations: false`.
      def allocated(profile, by)
        type = type(profile, ALLOCATIONS) or return
        counts = Counts.of(profile, by, type)
        counts unless counts.empty?
      end

      def type(profile, names)
        profile.sample_types.map(&:name).find { |name| names.include?(name) }
      end
    end
  end
end
