# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # The memory of several processes side by side, such as the workers of a server: what they share, and what
    # copy-on-write has cost.
    class Workers
      # @param memories [Array<MemprofilerPprof::Memory>]
      # @param names [Array<String>] where each is from
      # @param addresses [Array<String, nil>] where each process was asked, as several may have the same id, in
      #   containers; nil if it was not asked
      def initialize(memories, names = [], addresses: [])
        @memories = memories
        @names = names
        @addresses = addresses
      end

      # @param style [Style]
      # @return [String]
      def to_s(style = PLAIN)
        Text.section(section, style)
      end

      # @param data [Hash{Symbol => Object}] what JSON says besides
      # @param about [Hash{Symbol => Object}] other members of the section
      # @return [Section]
      # @api private
      def section(data: {}, **about)
        title = "#{@memories.size} #{several? ? "processes" : "profiles"}"
        Section.new(title: title, notes: notes, table: table, data: { **data, **to_h }, **about)
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        { private_bytes: sum(&:private_bytes), copied_bytes: sum(&:copied_bytes),
          processes: @memories.zip(@names).map { |memory, name| { input: name&.scrub, **memory.to_h } } }
      end

      private

      # Whether each is of another process.
      def several?
        @memories.map(&:pid).zip(@addresses).uniq.size == @memories.size
      end

      # @return [Integer, nil] of those that know; nil if none does, or they cannot be added up
      def sum(&)
        known = @memories.filter_map(&)
        known.sum if known.any? && several?
      end

      def notes
        Note.list(Codes::SHARED => shared)
      end

      def shared
        own = sum(&:private_bytes) or return
        copied = sum(&:copied_bytes)
        copied = ", of which #{size(copied)} were shared before they were written to" if copied
        "The processes' own memory is #{size(own)} in all#{copied}. What is shared counts in each of them."
      end

      def table
        columns = %w[RSS SHARED PRIVATE COPIED].map { |title| [title, :right, nil] }
        groups = MemoryText::GROUPS.keys.map.with_index(10) { |name, drop_rank| [name.upcase, :right, drop_rank] }
        table = Table.new([["PID", :right, nil], *columns, *groups, ["", :left, nil]])
        @memories.zip(@names) { |memory, name| table.add(cells(memory, name.to_s), code: Codes::PROCESS) }
        add_sums(table, groups.size) if sum(&:private_bytes)
        table
      end

      def add_sums(table, groups)
        table.add(["", "", "", size(sum(&:private_bytes)), size(sum(&:copied_bytes)), *[""] * groups, "all"],
                  :bold, code: Codes::ALL)
      end

      def cells(memory, name)
        sizes = [memory.rss, memory.shared_bytes, memory.private_bytes, memory.copied_bytes,
                 *MemoryText.groups(memory).values_at(*MemoryText::GROUPS.keys)]
        [memory.pid.to_s, *sizes.map { |bytes| size(bytes) }, name]
      end

      def size(value)
        value ? Units.format(value, "bytes") : ""
      end
    end
  end
end
