# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Which lines of the ledger of a process's memory grow in a series of its profiles. Each is tested as a site is
    # ({Growth}), with a KiB in place of a sample, so that sampling explains next to nothing; the p-values are corrected
    # for the number of lines by Holm's method. What objects have must also have grown from one major garbage collection
    # to another, since it may be garbage.
    class MemoryGrowth
      # The lines that belong to objects.
      OBJECTS = %i[object_slots object_memory transient_heap].freeze
      # What the others are called if they grow. What objects own that no sample is of is in the remainder.
      NATIVE = "native memory"
      LARGE = "a few large objects"
      KINDS = { free_slots: "fragmentation of Ruby's heap", allocator_free: "fragmentation in malloc",
                profiler: "the profiler itself", thread_stacks: "threads", code: "code that is loaded or compiled",
                jit_code: "code that is compiled" }.tap { |kinds| kinds.default = "#{NATIVE} or #{LARGE}" }.freeze
      KIBIBYTE = 1024
      # What grows by less than this part of the resident memory in the whole series does not matter.
      LEAST_RISE = 0.005
      private_constant :OBJECTS, :NATIVE, :LARGE, :KINDS, :KIBIBYTE, :LEAST_RISE

      # @!attribute line
      #   @return [MemprofilerPprof::Memory::Line] in the last profile
      # @!attribute verdict
      #   @return [Symbol] `:growing` or `:slowing`, see {Leaks::VERDICTS}
      # @!attribute probability
      #   @return [Float] that the growth is not chance, corrected for the number of lines, 0..1
      # @!attribute growth
      #   @return [Growth]
      # @!attribute kind
      #   @return [String] what kind of growth it is
      Finding = Struct.new(:line, :verdict, :probability, :growth, :kind) do
        # @return [Boolean] whether it belongs to objects
        def objects?
          OBJECTS.include?(line.key)
        end

        # @return [Boolean] whether it may be some large objects that no sample is of, or no object at all
        def untold?
          !objects? && !KINDS.value?(kind)
        end
      end

      # What {Growth} needs of a profile, with lines in place of sites.
      Point = Struct.new(:time, :allocated, :levels) do
        def weight = 1.0
        def sites = {}
        def windows(_) = nil
        def allocations(_) = nil
        def objects(key) = bytes(key) / KIBIBYTE
        def bytes(key) = levels.fetch(key)
      end
      private_constant :Point

      # @return [Array<Finding>] the fastest first
      attr_reader :findings
      # @return [Growth, nil] of the resident memory; nil if there are too few profiles that say where memory was
      attr_reader :resident

      # @param snapshots [Array<Snapshot>] of one process, in order of time
      # @param clean [Array<Integer>, nil] which of them were the first after a major collection; nil if not known
      def initialize(snapshots, clean)
        @findings = []
        @snapshots = snapshots
        kept = comparable(snapshots)
        return if kept.size < Leaks::LEAST

        @memories = snapshots.values_at(*kept).map(&:memory)
        @points = snapshots.values_at(*kept).map do |snapshot|
          Point.new(snapshot.time, snapshot.totals["total_allocated_objects"], levels(snapshot.memory))
        end
        @clean = Progress.first_after_major(kept, clean)
        @resident = growth(:resident, @points, nil)
        @findings = find.sort_by { |finding| -finding.growth.rate.first }
      end

      # @return [Array<Finding>] those that do not slow down
      def growing
        findings.select { |finding| finding.verdict == :growing }
      end

      # @return [Boolean] whether the resident memory grows, and no part of it does for sure
      def untold?
        findings.empty? && !@resident.nil? && @resident.p_value < Leaks::LEVEL && matters?(@resident) &&
          @resident.grows? && !@resident.slowing?
      end

      # @return [Integer] bytes that are resident in the last profile and were not in the first
      # @api private
      def gain
        @resident.gain
      end

      # @return [Array<Finding>] those that do not slow down; all if each does
      def leading
        growing.empty? ? findings : growing
      end

      # @return [Boolean] whether something grows, and nothing of that is known to belong to objects
      def not_objects?
        leading.any? && leading.none?(&:objects?)
      end

      # @return [Array<Hash{Symbol => Object}>] for JSON
      def to_a
        findings.map do |finding|
          { code: Codes.const_get(finding.verdict.upcase), key: finding.line.key, name: finding.line.name,
            kind: finding.kind, probability: finding.probability,
            growth_bytes_per_second: %i[value low high].zip(finding.growth.rate).to_h, bytes: finding.growth.bytes }
        end
      end

      private

      # What is not known is part of another line. So only profiles that know the same lines can be compared: the most
      # that do.
      #
      # @return [Array<Integer>] the indices of these
      def comparable(snapshots)
        known = snapshots.each_index.select { |index| snapshots[index].memory&.rss }
        groups = known.group_by { |index| snapshots[index].memory.lines.map { |line| [line.key, line.bytes.nil?] } }
        groups.values.max_by(&:size) || []
      end

      def levels(memory)
        memory.lines.to_h { |line| [line.key, line.bytes] }.merge(resident: memory.rss)
      end

      def find
        known = @memories.last.lines.select(&:bytes)
        growths = known.to_h { |line| [line, of_line(line.key)] }.select { |_, growth| growth.testable? }
        adjusted = Statistics.holm(growths.values.map(&:p_value))
        growths.zip(adjusted).filter_map { |(line, growth), p_value| judge(line, growth, p_value) }
      end

      def judge(line, growth, p_value)
        return unless p_value < Leaks::LEVEL && matters?(growth) && growth.grows?

        Finding.new(line, growth.slowing? ? :slowing : :growing, 1 - p_value, growth, kind(line)).freeze
      end

      def kind(line)
        return "objects" if OBJECTS.include?(line.key)

        # Where the allocator does not say what is free, that is a part of what it has.
        return KINDS[line.key] unless line.key == :vm_memory && @memories.last[:allocator_free].nil?

        apart || "#{NATIVE}, #{KINDS[:allocator_free]} or #{LARGE}"
      end

      # Where it takes long to say what is free, some profiles know it.
      #
      # @return [String, nil] what grows in these; nil if too few know it, or nothing does
      def apart
        telling = MemoryGrowth.new(@snapshots.select { |snapshot| snapshot.memory&.[](:allocator_free) }, nil)
        telling.growing.find { |finding| %i[allocator_free vm_memory].include?(finding.line.key) }&.kind
      end

      def matters?(growth)
        seconds = @points.last.time - @points.first.time
        growth.rate.first * seconds >= @memories.last.rss * LEAST_RISE
      end

      def of_line(key)
        return growth(key, @points, nil) unless OBJECTS.include?(key) && @clean

        # What is alive after the last major collection may be garbage.
        growth(key, @points[..@clean.last], @clean)
      end

      def growth(key, points, clean)
        progress = Progress.of(points, points.map(&:allocated))
        Growth.new(points, key, contiguous: false, clean: clean, progress: progress)
      end
    end
  end
end
