# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # Where the memory is, in place of the table: what the newest profile says.
      class MemoryPanel
        STEPS = { up: -1, down: 1, page_up: -10, page_down: 10 }.freeze
        HELP = "m, Esc back  p pause  Up/Down scroll"
        NOTHING = "The profiles of this process do not say where its memory is."
        # What keeps its meaning.
        PAUSE = ["p", " "].freeze
        private_constant :STEPS, :HELP, :NOTHING, :PAUSE

        # @return [Boolean]
        def open?
          @open ? true : false
        end

        # @return [void]
        def open
          @open = true
          @first = 0
        end

        # @param key [Symbol, String]
        # @return [Boolean] whether it was for the panel, as most are while it is open
        def press(key)
          return false unless open?

          @open = false if [:escape, "m"].include?(key)
          @first += STEPS.fetch(key, 0)
          !PAUSE.include?(key)
        end

        # @param memories [Array<MemprofilerPprof::Memory, nil>] of a process, or of several
        # @param style [MemprofilerPprof::Report::Style]
        # @param height [Integer] in lines
        # @return [Array<String>] at most so many lines
        def lines(memories, style, height)
          all = text(memories.compact, style).lines.map(&:chomp)
          @first = @first.clamp(0, [all.size - height, 0].max)
          all[@first, height]
        end

        # @return [String, nil] the keys that there are
        def help
          HELP if open?
        end

        private

        def text(memories, style)
          case memories.size
          when 0 then NOTHING
          when 1 then MemprofilerPprof::Report::Memory.new(memories.first).to_s(style)
          else MemprofilerPprof::Report::Workers.new(memories).to_s(style)
          end
        end
      end
    end
  end
end
