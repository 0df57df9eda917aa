# frozen_string_literal: true

require "forwardable"

module MemprofilerPprof
  module Report
    # A series of profiles by the program's own progress, its count of allocations, in place of time. What leaks with a
    # program's work grows evenly by that, whatever its load is; in time it grows with the load, and stands still when
    # the program does.
    #
    # Of profiles between which the program did next to nothing only the last counts, since they say the same: two of
    # them are less than half as far apart as they would be at an even pace.
    #
    # @api private
    class Progress
      # What {Growth} needs of a profile. `snapshots` are that one, which is the last, and those left out before it.
      Point = Struct.new(:time, :snapshots) do
        extend Forwardable
        def_delegators :snapshot, :weight, :sites, :windows, :objects, :bytes

        def snapshot = snapshots.last

        def allocations(key)
          counts = snapshots.map { |snapshot| snapshot.allocations(key) }
          counts.sum if counts.all?
        end
      end
      private_constant :Point

      # @param kept [Array<Integer>] the indices of some profiles of a series
      # @param clean [Array<Integer>, nil] which of the series were the first after a major collection
      # @return [Array<Integer>, nil] which of the kept ones were
      def self.first_after_major(kept, clean)
        clean && kept.each_index.select do |index|
          index.zero? || clean.any? { |at| at > kept[index - 1] && at <= kept[index] }
        end
      end

      # @param snapshots [Array<Snapshot>] in order of time, or what {Growth} needs of them
      # @param allocated [Array<Integer, nil>] how many objects the program has allocated until each of them
      # @return [Progress, nil] nil if that is not known, or it did nothing
      def self.of(snapshots, allocated)
        new(snapshots, allocated) if snapshots.any? && allocated.all? && allocated.last > allocated.first
      end

      def initialize(snapshots, allocated)
        @kept = spread(allocated)
        @points = @kept.each_with_index.map do |at, index|
          before = index.zero? ? -1 : @kept[index - 1]
          Point.new(allocated[at].to_f, snapshots[(before + 1)..at])
        end
      end

      # @param clean [Array<Integer>, nil] of all profiles
      # @return [Growth, nil] nil if there are too few samples or profiles
      def growth(key, contiguous:, clean:)
        return if @points.size < Trend::LEAST

        growth = Growth.new(@points, key, contiguous: contiguous, clean: Progress.first_after_major(@kept, clean))
        growth if growth.testable?
      end

      private

      # The indices of profiles that are far enough from the next.
      def spread(allocated)
        least = (allocated.last - allocated.first) / (allocated.size - 1) / 2.0
        (allocated.size - 2).downto(0).each_with_object([allocated.size - 1]) do |index, kept|
          kept.unshift(index) if allocated[kept.first] - allocated[index] >= least
        end
      end
    end
  end
end
