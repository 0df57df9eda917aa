# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # Who holds the objects of a row: the row is chosen, the process asked, and the answer shown.
      class Holders
        # By what rows can be grouped, and how they are asked for then: a keyword of {Collector#retainers}.
        KEYWORDS = { line: :site, file: :site, class: :class_name }.freeze
        STEPS = { up: -1, down: 1, page_up: -10, page_down: 10 }.freeze
        HELP = { choosing: "Who holds it?  Up/Down choose a row  Enter ask  Esc back",
                 asking: "Esc back", answered: "Esc back  Up/Down scroll" }.freeze
        private_constant :KEYWORDS, :STEPS, :HELP

        # @return [Symbol, nil] :choosing, :asking or :answered; nil if nobody wants to know
        attr_reader :state
        # @return [Integer] the number of the chosen row
        attr_reader :row

        # @return [Boolean]
        def choosing?
          state == :choosing
        end

        # @return [Boolean] whether the answer takes the place of the table
        def shown?
          %i[asking answered].include?(state)
        end

        # @param row [Integer] the first one that can be seen
        # @return [void]
        def open(row)
          @state = :choosing
          @row = row
        end

        # @param key [Symbol, String]
        # @param by [Symbol] what the rows are grouped by
        # @param rows [Array<MemprofilerPprof::Report::Activity::Row>]
        # @return [void]
        def press(key, by, rows)
          case key
          when :escape then @state = @question = nil
          when *STEPS.keys then move(STEPS[key], rows.size)
          when :enter, "w" then ask(by, rows[@row]) if choosing?
          end
        end

        # @return [Hash{Symbol => String}, nil] what the process is to be asked, once
        def question
          question = @wanted
          @wanted = nil
          question
        end

        # @param question [Hash{Symbol => String}] what {#question} returned
        # @param answer [Array<Retainers>, Exception]
        # @return [void]
        def answer(question, answer)
          return unless question.equal?(@question)

          @state = :answered
          @answer = answer
        end

        # @param style [MemprofilerPprof::Report::Style]
        # @param height [Integer] in lines
        # @return [Array<String>] at most so many lines
        def lines(style, height)
          all = text(style).lines.map(&:chomp)
          @first = (@first || 0).clamp(0, [all.size - height, 0].max)
          all[@first, height]
        end

        # @return [String, nil] the keys that there are
        def help
          HELP[state]
        end

        # @param table [Array<String>] its titles and the visible rows
        # @param first [Integer] the number of the first one
        # @return [Array<String>] the same with a mark at the chosen row
        def mark(table, first)
          table.each_with_index.map { |line, index| "#{index == @row - first + 1 ? "> " : "  "}#{line}" }
        end

        private

        def move(step, count)
          return @first = (@first || 0) + step if shown?

          @row = (@row + step).clamp(0, [count - 1, 0].max)
        end

        def ask(by, row)
          return unless row

          @first = 0
          keyword = KEYWORDS[by]
          @question = @wanted = ({ keyword => row.name } if keyword)
          @subject = row.name
          @state = keyword ? :asking : :answered
          @answer = Source::Unavailable.new("rows by #{by} cannot be asked for: Tab groups by line, file or class")
        end

        def text(style)
          site_text = MemprofilerPprof::Report::SiteText
          return site_text.printable("Asking who holds #{@subject} ...") if state == :asking
          return site_text.printable(@answer.message) if @answer.is_a?(Exception)

          @answer.map { |retainers| retainers.to_s(style) }.join("\n\n")
        end
      end
    end
  end
end
