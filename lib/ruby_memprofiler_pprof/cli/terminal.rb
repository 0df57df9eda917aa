# frozen_string_literal: true

require "io/console"

module MemprofilerPprof
  class CLI
    # The width of the terminal, and whether it shows colours.
    module Terminal
      # The width for a file or pipe.
      WIDTH = 120
      # The least width that has room for a figure and its site.
      NARROWEST = 56

      module_function

      # The width is that of COLUMNS, or else the terminal's; NO_COLOR (https://no-color.org) switches colours off.
      #
      # @return [MemprofilerPprof::Report::Style]
      def style(out = $stdout)
        color = out.tty? && ENV["TERM"] != "dumb" && ENV.fetch("NO_COLOR", "").empty?
        MemprofilerPprof::Report::Style.new([width(out), NARROWEST].max, color).freeze
      end

      def width(out)
        columns = ENV["COLUMNS"].to_i
        return columns if columns.positive?

        out.tty? && (size = out.winsize.last).positive? ? size : WIDTH
      rescue SystemCallError
        WIDTH
      end
    end
  end
end
