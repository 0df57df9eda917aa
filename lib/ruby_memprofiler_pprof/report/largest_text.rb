# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # The objects that keep the most memory alive, in words.
    #
    # @api private
    class LargestText
      HEADING = "Largest, whoever allocated it"
      private_constant :HEADING

      # @param retainers [MemprofilerPprof::Retainers]
      def initialize(retainers)
        @retainers = retainers
      end

      # @return [Array<Array(String, String, String)>] for each the bytes, the share of all, and what it is
      def rows
        @retainers.largest.map do |each|
          alike = "#{Units.format(each.alike, "count")} alike, such as " if each.alike > 1
          share = Units.percent(each.bytes.fdiv(@retainers.bytes))
          [Units.format(each.bytes, "bytes"), share, "#{alike}#{each.phrase}"]
        end
      end

      # @param style [Style]
      # @return [Array<String>]
      def lines(style)
        return [] if rows.empty?

        widths = rows.transpose.first(2).map { |cells| cells.map(&:size).max }
        lines = rows.map do |bytes, share, phrase|
          figures = "  #{bytes.rjust(widths[0])}  #{share.rjust(widths[1])}  "
          "#{figures}#{Table.cut(SiteText.printable(phrase), width: style.width - figures.size)}"
        end
        [style.paint(HEADING, :bold), *lines]
      end
    end
  end
end
