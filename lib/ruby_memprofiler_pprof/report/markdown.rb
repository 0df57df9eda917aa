# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Shows what was found as Markdown of a bounded size: for tickets, chats and coding assistants. Findings are items
    # of lists, which all of these show well. What does not fit is left out as a whole: first notes that only describe
    # the process, then the last findings of each section, then the last sections, then the last notes about all of
    # them.
    #
    # @api private
    class Markdown
      # The size by default, and the least that holds the frame and some findings.
      MAX_BYTES = 8000
      LEAST_BYTES = 500

      # The notes that are left out first, in this order.
      LEAST_NOTES = [Codes::PARTS, Codes::SEEN, Codes::RESIDENT, Codes::EXPLAINED].freeze

      # What could be markup. Underscores within words are none.
      MARKUP = /[\\`*\[\]<>|~#]|(?<![[:alnum:]])_|_(?![[:alnum:]])/
      # The title of columns that are shown in parentheses.
      INTERVAL = "95% INTERVAL"
      private_constant :MARKUP, :INTERVAL

      # A section as text.
      Block = Struct.new(:head, :items) do
        # How many findings of it may be shown; one without any is shown all the same.
        def steps
          1..[items.size, 1].max
        end

        def first(count)
          items.first(count)
        end
      end
      private_constant :Block

      # @param document [Document]
      # @param max_bytes [Integer] from {LEAST_BYTES}
      # @raise [ArgumentError]
      def initialize(document, max_bytes: MAX_BYTES)
        @document = document
        @max_bytes = Argument.integer(:max_bytes, max_bytes, from: LEAST_BYTES)
      end

      # @return [String] at most so many bytes
      def to_s
        @notes = @document.notes.map { |note| "\n#{escape(note.text)} (#{note.code})\n" }
        (0..LEAST_NOTES.size).each do |count|
          @without = LEAST_NOTES.first(count)
          @blocks = @document.sections.map { |section| Block.new(head(section), items(section.table)) }
          whole = render(@blocks.map { |block| block.items.size })
          return whole if fits?(whole)
        end
        render(fitting)
      end

      private

      def fits?(text)
        text.bytesize <= @max_bytes
      end

      # @param counts [Array<Integer, nil>] how many findings of each section are shown; nil if not even its head is
      def render(counts)
        parts = @blocks.zip(counts).filter_map { |block, count| block.head + block.first(count).join if count }
        [frame, *parts, *left_out(counts)].join("\n")
      end

      # The notes, and the findings of all sections in turn, as long as there is room.
      def fitting
        counts = [nil] * @blocks.size
        @notes.pop until @notes.empty? || fits?(render(counts))
        turns = @blocks.each_with_index.flat_map { |block, index| block.steps.map { |step| [step, index] } }
        turns.sort.each do |step, index|
          more = counts.dup.tap { |all| all[index] = step }
          break unless fits?(render(more))

          counts = more
        end
        counts
      end

      def frame
        ["# memprofiler #{@document.command}\n\nFigures are estimates, with 95 % intervals in parentheses.\n",
         *@notes].join
      end

      def left_out(counts)
        findings = @blocks.zip(counts).sum { |block, count| block.items.size - block.first(count.to_i).size }
        sections = counts.count(&:nil?)
        missing = [counted(missing_notes, "note"), counted(findings, "finding"),
                   ("#{sections} of #{counted(counts.size, "section")}" if sections.positive?)].compact
        "Left out to stay within #{@max_bytes} bytes: #{missing.join(", ")}.\n" if missing.any?
      end

      def missing_notes
        @document.notes.size - @notes.size + @document.sections.sum { |section| least_notes(section).size }
      end

      # @return [String, nil] nil if there are none
      def counted(number, noun)
        "#{number} #{noun}#{"s" if number > 1}" if number.positive?
      end

      # The notes of a section that are left out.
      def least_notes(section)
        section.notes.select { |note| @without.include?(note.code) }
      end

      def head(section)
        title = [section.group, section.title].compact.join(": ")
        paragraphs = [section.summary, *section.closing].compact.map { |text| "#{escape(text)}\n\n" }
        notes = section.notes - least_notes(section)
        notes.map! { |note| "- **#{note.code}**: #{escape(note.text)}\n" }
        ["## #{escape(title)}\n\n", *paragraphs, *notes].join
      end

      def items(table)
        return [] unless table

        table.rows.map do |row|
          *figures, (label, _short) = row.cells
          indent = label[/\A */]
          figures = figures(table.columns[0...-1].zip(figures), row.code)
          "#{indent}- **#{row.code}** #{code(label.lstrip)}#{": #{figures}" unless figures.empty?}\n"
        end
      end

      # Such as "flat 12 KiB (11 KiB..13 KiB), 56%". A verdict is the code already.
      def figures(pairs, code)
        pairs.reject { |_, cell| cell.empty? || cell.casecmp?(code) }.each_with_object(+"") do |(column, cell), text|
          next text << " (" << cell << ")" if column.title == INTERVAL

          text << ", " unless text.empty?
          text << [column.title.downcase, cell].reject(&:empty?).join(" ")
        end
      end

      # In backquotes, more than there are in a row in the name itself.
      def code(name)
        longest = name.scan(/`+/).map(&:size).max
        return "`#{name}`" unless longest

        quotes = "`" * (longest + 1)
        "#{quotes} #{name} #{quotes}"
      end

      def escape(text)
        SiteText.printable(text).gsub(MARKUP) { |character| "\\#{character}" }
      end
    end
  end
end
