# frozen_string_literal: true

require "io/console"
require "ruby_memprofiler_pprof/report/display_width"

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # The whole terminal, which {#close} restores.
      class Screen
        # Escape sequences: alternate screen, no cursor, lines cut rather than wrapped if their width is misjudged; and
        # the reverse.
        OPEN = "\e[?1049h\e[?25l\e[?7l"
        CLOSE = "\e[0m\e[?7h\e[?25h\e[?1049l"
        # Lines and columns of a terminal that does not report its size.
        SIZE = [24, 80].freeze
        KEY = /\e\[[\d;]*[A-Za-z~]|\eO[A-Z]|./m
        NAMES = { "\e[A" => :up, "\e[B" => :down, "\e[C" => :right, "\e[D" => :left, "\e[5~" => :page_up,
                  "\e[6~" => :page_down, "\e[H" => :home, "\e[1~" => :home, "\eOH" => :home, "\eOA" => :up,
                  "\eOB" => :down, "\eOC" => :right, "\eOD" => :left, "\e" => :escape, "\r" => :enter, "\n" => :enter,
                  "\t" => :tab, "\u007f" => :backspace, "\b" => :backspace }.freeze
        # An escape sequence of a style.
        STYLE = /\e\[[\d;]*m/
        # What is in place of the rest of a long line, as in tables.
        REST = "..."
        private_constant :OPEN, :CLOSE, :SIZE, :KEY, :NAMES, :STYLE, :REST

        # @return [IO] what can be waited on for keys
        attr_reader :input

        # @param input [IO] the terminal
        # @param output [IO] the terminal, too
        def initialize(input, output)
          @input = input
          @output = output
        end

        # @return [void]
        def open
          return if @mode

          @mode = @input.console_mode
          prepare
          print(OPEN)
        end

        # Sets the terminal's mode, again where another program may have changed it.
        # @return [void]
        def prepare
          # Signals still come from the keyboard.
          @input.raw!(intr: true)
        end

        # @return [void]
        def close
          mode = @mode or return
          @mode = nil
          begin
            print(CLOSE)
          ensure
            @input.console_mode = mode
          end
        rescue SystemCallError, IOError
          # The terminal was closed.
          nil
        end

        # @return [Array(Integer, Integer)] lines and columns
        def size
          size = @output.winsize
          size.all?(&:positive?) ? size : SIZE
        rescue SystemCallError
          SIZE
        end

        # @param lines [Array<String>] from the top
        # @return [void]
        def draw(lines)
          width = size.last
          # Erased first: once the last column is written, the cursor is still on it.
          print("\e[H#{lines.map { |line| "\e[K#{cut(line, width)}" }.join("\r\n")}\e[J")
        end

        # @return [Array<Symbol, String>] the keys pressed since: names, and characters; nil if there is no terminal
        def keys
          text = @input.read_nonblock(256, exception: false)
          return text && [] if text.nil? || text == :wait_readable

          text.force_encoding(Encoding::UTF_8).scrub("").scan(KEY).map { |key| NAMES.fetch(key, key) }
        rescue SystemCallError, IOError
          nil
        end

        private

        # The styles of what is cut off stay, as each is also reset.
        def cut(line, width)
          display = MemprofilerPprof::Report::DisplayWidth
          return line if display.of(line.gsub(STYLE, "")) <= width

          left = width - REST.size
          parts = line.split(/(#{STYLE})/o).map do |part|
            next part if part.match?(STYLE)

            kept = display.first(part, left)
            left = kept == part ? left - display.of(part) : 0
            kept
          end
          [*parts, REST].join
        end

        # In one write, so that no incomplete screen is visible.
        def print(text)
          @output.write(text)
          @output.flush
        end
      end
    end
  end
end
