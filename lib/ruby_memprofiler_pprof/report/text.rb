# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Shows what was found as text, for terminals. Profiles that somebody else wrote may contain commands to these, so
    # control characters are replaced, those of a {Table} there.
    #
    # @api private
    class Text
      # @param section [Section]
      # @param style [Style]
      # @return [String]
      def self.section(section, style)
        head = printable([section.title, *section.notes&.map(&:text), section.summary].compact)
        closing = printable([*section.closing]).map { |paragraph| wrap(paragraph, style.width) }
        [head, section.table&.lines(style), closing].compact.map { |part| part.join("\n") }
                                                    .reject(&:empty?).join("\n\n")
      end

      def self.wrap(text, width)
        text.gsub(/(.{1,#{width}})(?: +|$)/, "\\1\n").chomp
      end
      private_class_method :wrap

      def self.printable(texts)
        texts.map { |text| SiteText.printable(text) }
      end

      # @param document [Document]
      # @param style [Style]
      def initialize(document, style)
        @document = document
        @style = style
      end

      # @return [String]
      def to_s
        groups = @document.sections.chunk_while { |one, other| one.group == other.group }
        parts = groups.flat_map do |sections|
          [*heading(sections.first), *sections.map { |section| self.class.section(section, @style) }]
        end
        "#{[*parts, *notes].join("\n\n")}\n"
      end

      private

      def heading(section)
        "== #{SiteText.printable(section.group)} ==" if section.group
      end

      def notes
        self.class.printable(@document.notes.map(&:text)).join("\n") if @document.notes.any?
      end
    end
  end
end
