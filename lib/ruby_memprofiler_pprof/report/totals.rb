# frozen_string_literal: true

require "ruby_memprofiler_pprof/tags"

module MemprofilerPprof
  module Report
    # The totals of a process that its profile contains, and how much of them the profile explains.
    class Totals
      # The comments that are numbers.
      NUMBERS = %w[pid live_slots_at_start heap_live_slots total_allocated_objects malloc_increase_bytes
                   oldmalloc_increase_bytes minor_gc_count major_gc_count heap_bytes rss_bytes peak_rss_bytes
                   thinned_samples missed_collections missed_deaths stack_overflows class_overflows
                   label_overflows].freeze
      # Of those, what a profile lost.
      LOSSES = %w[thinned_samples missed_collections missed_deaths stack_overflows class_overflows
                  label_overflows].freeze
      # What the values of live objects are called, in this gem's profiles and in those with Go's names.
      OBJECTS = %w[retained_objects inuse_objects].freeze
      BYTES = %w[retained_size inuse_space].freeze
      # The comment of a profile that was written without the GVL.
      EMERGENCY = /\Aemergency=/
      # That of one that was written when its process exited.
      AT_EXIT = /\Aat_exit=/
      # That of a sum of several.
      MERGED = /\Amerged=/
      # A comment that is a number, or begins with one. Greater ones are no counts, and may be infinite as a Float.
      NUMBER = /\A(\w+)=(-?\d{1,19}(?:\.\d+)?)(?::|\z)/
      private_constant :EMERGENCY, :AT_EXIT, :MERGED, :NUMBER

      # @param tags [Hash{String => String}] of a profile
      # @return [String, nil] a sentence, if its process was attached to
      # @api private
      def self.attached(tags)
        at = tags[Tags::ATTACHED] and "Attached at #{at}: what was allocated before is unknown."
      end

      # @param profile [Profile]
      def initialize(profile)
        @retained_bytes = sum(profile, BYTES)
        @retained_objects = sum(profile, OBJECTS)
        @sampled_in_windows = profile.sampled_in_windows?
        @incomplete = profile.comments.any?(EMERGENCY)
        @at_exit = profile.comments.any?(AT_EXIT)
        @figures = figures(profile.comments)
        @tags = Tags.of(profile.comments)
        @memory = MemprofilerPprof::Memory.of(profile)
      end

      # @return [MemprofilerPprof::Memory, nil] where the memory was; nil if the profile does not say
      attr_reader :memory

      # @return [Hash{String => String}] the setting `tags` of the process; of a merged profile those that all share
      attr_reader :tags

      # @param name [String] one of {NUMBERS}
      # @return [Integer, nil]
      def [](name)
        @figures[name]&.to_i
      end

      # @return [Float, nil] when sampling began, in seconds since 1970
      def started_at
        @figures["started_at"]&.to_f
      end

      # @return [Array(Integer, Float), Array(Integer, nil), nil] what tells the process from others: its pid, and when
      #   sampling began in it
      def process
        pid = self["pid"] and [pid, started_at]
      end

      # @return [Integer, nil] how many garbage collections there were in the process
      def collections
        minor, major = %w[minor_gc_count major_gc_count].map { |name| self[name] }
        minor + major if minor && major
      end

      # @return [Profile::Estimate, nil] bytes of the live objects in the profile
      attr_reader :retained_bytes
      # @return [Profile::Estimate, nil] how many live objects are in the profile
      attr_reader :retained_objects

      # @return [Integer, nil] how many live objects are not in the profile: mostly those from before sampling began
      def unseen_objects
        slots = self["heap_live_slots"]
        [slots - retained_objects.value, 0].max if slots && retained_objects
      end

      # @return [Boolean] whether it was written without the GVL, and so lacks contents, ages and allocations
      def incomplete?
        @incomplete
      end

      # @return [Boolean] whether it was written when the process exited, and so may lack what threads, at_exit blocks
      #   and variables held
      def at_exit?
        @at_exit
      end

      # @return [Array<String>] sentences, without control characters
      def lines
        notes.map { |note| SiteText.printable(note.text) }
      end

      # @return [Array<Note>] the same, with their codes
      # @api private
      def notes
        Note.list(Codes::EXPLAINED => explained, **MemoryText.head(memory), Codes::SEEN => seen,
                  Codes::ATTACHED => Totals.attached(tags), Codes::INCOMPLETE => incomplete,
                  Codes::AT_EXIT => at_exit, Codes::LOST => lost, Codes::WINDOWS => windows)
      end

      # @return [Hash{Symbol => Object}] for JSON, with nil for what is not known
      def to_h
        NUMBERS.to_h { |name| [name.to_sym, self[name]] }
               .merge(started_at: started_at, tags: tags, retained_bytes: retained_bytes&.to_h&.except(:windows),
                      retained_objects: retained_objects&.to_h&.except(:windows), unseen_objects: unseen_objects,
                      memory: memory&.to_h)
      end

      private

      # A merged profile has the comments of each, without saying which belong together.
      def figures(comments)
        return {} if comments.any?(MERGED)

        pairs = comments.filter_map { |comment| comment.match(NUMBER)&.captures }
        pairs.group_by(&:first).values.select { |found| found.size == 1 }.to_h(&:first)
      end

      def sum(profile, names)
        type = profile.sample_types.find { |candidate| names.include?(candidate.name) }
        type && profile.total(type)
      end

      def explained
        rss = self["rss_bytes"]
        return unless rss && retained_bytes

        interval = Units.interval(retained_bytes.low, retained_bytes.high, "bytes")
        heap = self["heap_bytes"]
        "Explains #{size(retained_bytes.value)} (#{interval}) of #{size(rss)} resident memory" \
          "#{", of which #{size(heap)} are the pages of Ruby's heap" if heap}.#{peak(rss)}"
      end

      # Only if it was notably more than now.
      def peak(rss)
        highest = self["peak_rss_bytes"]
        " At its peak it was #{size(highest)}." if highest && highest > rss * 1.1
      end

      def seen
        return unless unseen_objects

        earlier = self["live_slots_at_start"]
        "Sees #{count(retained_objects.value)} of #{count(self["heap_live_slots"])} objects" \
          "#{"; #{count(earlier)} existed before the profiler started" if earlier}."
      end

      def lost
        losses = LOSSES.filter_map { |name| "#{name.tr("_", " ")} #{count(self[name])}" if self[name]&.positive? }
        return if losses.empty?

        estimates = " Figures are estimates." if self["thinned_samples"]&.positive?
        "Lost: #{losses.join(", ")}.#{estimates}"
      end

      def incomplete
        return unless incomplete?

        "Written while Ruby did not answer: it lacks allocations, contents other than those of Strings and Arrays, " \
          "and some names."
      end

      def at_exit
        "Written at the process's exit: what threads, at_exit blocks and variables held may be gone." if at_exit?
      end

      def windows
        return unless @sampled_in_windows

        "Sampled in windows of time: what happens once, within a few milliseconds, may be missing, or look larger."
      end

      def size(value)
        Units.format(value, "bytes")
      end

      def count(value)
        Units.format(value, "count")
      end
    end
  end
end
