# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # {Memory} in words and a table, for people.
    #
    # @api private
    class MemoryText
      # What is told apart where there is little room.
      GROUPS = {
        "objects" => %i[object_slots object_memory transient_heap], "Ruby code" => %i[code],
        "free slots" => %i[free_slots], "free in malloc" => %i[allocator_free],
        "VM and C libraries" => %i[vm_memory jit_code thread_stacks], "files" => %i[files_private files_shared],
        "profiler" => %i[profiler]
      }.freeze
      COLORS = { free_slots: :yellow, allocator_free: :yellow, unexplained: :dim }.freeze
      # Sites that keep less than this part of the free slots are not shown.
      LEAST_SHARE = 0.01
      private_constant :COLORS, :LEAST_SHARE

      class << self
        # What other reports say of it.
        # @param memory [MemprofilerPprof::Memory, nil]
        # @return [Hash{String => String, nil}] sentences by code, as for {Note.list}
        def head(memory)
          memory.nil? ? {} : { Codes::RESIDENT => resident(memory), Codes::PARTS => parts(memory) }
        end

        # @return [Hash{String => Integer}] the bytes of the {GROUPS} that are known
        def groups(memory)
          sums = GROUPS.transform_values { |keys| keys.filter_map { |key| memory[key] } }
          sums.reject { |_, sizes| sizes.empty? }.transform_values(&:sum)
        end

        def resident(memory)
          return unless memory.rss

          peak = ", #{size(memory.peak_rss)} at most so far" if memory.peak_rss
          "#{size(memory.rss)} resident#{peak}.#{unexplained(memory)}"
        end

        private

        def unexplained(memory)
          " Unexplained: #{Units.percent(memory.unexplained.fdiv(memory.rss))}." if memory.unexplained
        end

        def parts(memory)
          sizes = groups(memory).select { |_, bytes| bytes.positive? }.sort_by { |_, bytes| -bytes }
          "Of that: #{sizes.map { |name, bytes| "#{name} #{size(bytes)}" }.join(", ")}." if sizes.any?
        end

        def size(value)
          Units.format(value, "bytes")
        end
      end

      # @param memory [MemprofilerPprof::Memory]
      def initialize(memory)
        @memory = memory
      end

      # @param about [Hash{Symbol => Object}] other members of the section
      # @return [Section]
      def section(**about)
        Section.new(title: title, notes: notes, table: table, closing: advice, **about)
      end

      private

      def title
        process = "Process #{@memory.pid}" if @memory.pid
        [process || "Where the memory is", *@memory.time&.strftime("%F %T UTC")].join(", ")
      end

      def notes
        Note.list(Codes::RESIDENT => self.class.resident(@memory), Codes::SHARED => shared, Codes::SWAPPED => swapped,
                  Codes::LIMIT => limit, Codes::ATTACHED => attached, Codes::MEASURED => measured)
      end

      def shared
        return unless @memory.private_bytes && @memory.shared_bytes

        copied = @memory.copied_bytes
        copied = ", of which #{size(copied)} were shared before they were written to" if copied&.positive?
        "#{size(@memory.private_bytes)} are this process's own#{copied}; it shares #{size(@memory.shared_bytes)} " \
          "with others."
      end

      def swapped
        "#{size(@memory.swap)} are swapped out." if @memory.swap&.positive?
      end

      def limit
        limit = @memory.limit or return
        used = "#{Units.percent(limit.used)} of it used" if limit.used
        "Limit: #{size(limit.bytes)} (#{[limit.kind, used].compact.join(", ")})."
      end

      def attached
        at = @memory.attached_at or return
        older = ": what older objects own counts as the VM's" unless @memory.full?
        "Attached at #{at.strftime("%F %T UTC")}#{older}."
      end

      def measured
        return unless @memory.allocator && @memory.elapsed

        walked = @memory.full? ? "after a walk over the heap" : "at a glance"
        "Allocator: #{@memory.allocator}. Measured #{walked}, in #{Units.duration(@memory.elapsed)}."
      end

      def table
        table = Table.new([["BYTES", :right, nil], ["SHARE", :right, nil], ["95% INTERVAL", :right, 10],
                           ["", :left, 11], ["WHERE", :left, nil]])
        @memory.lines.each do |line|
          table.add(cells(line), COLORS[line.key], code: Codes::LINE)
          add_held_slots(table) if line.key == :free_slots
        end
        table
      end

      def cells(line)
        note = " (#{line.note})" if line.note
        interval = line.interval ? Units.interval(*line.interval, "bytes") : ""
        [line.bytes ? size(line.bytes) : "unknown", share(line.bytes), interval,
         line.source == :unknown ? "" : line.source.to_s, ["#{line.name}#{note}", line.name]]
      end

      def add_held_slots(table)
        keepers = @memory.held_slots.select { |held| held.bytes >= @memory[:free_slots].to_i * LEAST_SHARE }
        paths = PathShortener.new(keepers.map { |held| held.site[%r{\A/.*(?=:\d+\z)}] })
        keepers.each do |held|
          objects = Units.format(held.objects, "count")
          text = "  kept by #{objects} objects allocated at #{paths.shorten(held.site)}"
          table.add([size(held.bytes), share(held.bytes), "", "estimated", text], code: Codes::HELD_SLOTS)
        end
      end

      def share(bytes)
        bytes && @memory.rss ? Units.percent(bytes.fdiv(@memory.rss)) : ""
      end

      # @return [Array<String>, nil]
      def advice
        sentences = @memory.advice.map do |advice|
          bound = " That frees #{size(advice.at_most)} at most." if advice.at_most
          "#{advice.text}#{bound}"
        end
        sentences if sentences.any?
      end

      def size(value)
        Units.format(value, "bytes")
      end
    end
  end
end
