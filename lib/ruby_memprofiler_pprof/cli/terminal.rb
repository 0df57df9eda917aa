# frozen_string_literal: true

require "io/console"

module MemprofilerPprof
  class CLI
    # What stdout can show.
    module Terminal
      # What is taken as the width of a file or pipe.
      WIDTH = 120
      # Below it there is no room for a figure and its site.
      NARROWEST = 56

      module_function

      # COLUMNS tells the width, or else the terminal; NO_COLOR (https://no-color.org) switches colours off.
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
