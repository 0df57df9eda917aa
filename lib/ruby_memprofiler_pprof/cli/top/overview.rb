# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/top/memory_panel"
require "ruby_memprofiler_pprof/cli/top/processes"
require "ruby_memprofiler_pprof/cli/top/view"

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # The contents of the screen for several processes: all of them side by side, or the {View} of the chosen one.
      class Overview
        KEYS = { "p" => :pause, " " => :pause, :up => :up, :down => :down, :enter => :choose, :left => :previous_order,
                 "<" => :previous_order, :right => :next_order, ">" => :next_order,
                 "m" => :show_memory }.freeze
        HELP = "q quit  p pause  Left/Right sort  Up/Down, Enter choose a process  m memory"
        VIEW_HELP = "Backspace all processes  #{View::HELP}".freeze
        private_constant :KEYS, :HELP, :VIEW_HELP

        # @return [String, nil] the address of the process that is shown alone
        attr_reader :chosen

        # @param heading [String]
        # @param sort [Symbol]
        # @param options [Hash] `by` and `app`, as for {View#initialize}
        # @param narrow [Proc] selects the samples of a profile
        def initialize(heading, sort:, **options, &narrow)
          @heading = heading
          @sort = sort
          @options = options
          @narrow = narrow
          @paused = false
          @answers = {}
          @memory = MemoryPanel.new
        end

        # @return [Boolean]
        def paused?
          @view ? @view.paused? : @paused
        end

        # @return [Boolean] whether characters are part of a filter
        def typing?
          @view ? @view.typing? : false
        end

        # @return [Hash{Symbol => String}, nil] see {Holders#question}
        def question
          @view&.question
        end

        # @return [void] see {Holders#answer}
        def answer(...)
          @view&.answer(...)
        end

        # In the background: when the answers come, another process may be chosen, or none.
        #
        # @yieldparam chosen [String, nil] the only process to ask; nil asks all
        # @yieldreturn [Hash{String => Profile, Source::Unavailable}] see {Directory#fetch}
        # @return [Hash{String => Profile, Source::Unavailable}] with the last ones of those that were not asked
        def fetch
          chosen = @chosen
          answers = yield chosen
          chosen ? @answers.merge(answers) : answers
        end

        # @param answers [Hash{String => Profile, Source::Unavailable}] see {#fetch}
        def profile=(answers)
          @problem = nil
          @time = Time.now
          @answers = answers
          @processes = nil
          show(answers[@chosen]) if @view && answers.key?(@chosen)
        end

        # @param text [String] why there is nothing newer
        def problem=(text)
          @problem = MemprofilerPprof::Report::SiteText.printable(text)
          @view&.problem = text
        end

        # @param key [Symbol, String]
        # @return [void]
        def press(key)
          return @view = @chosen = nil if @view && key == :backspace && !typing?
          return @view.press(key) if @view
          return if @memory.press(key)

          action = KEYS[key]
          __send__(action) if action
        end

        # @param style [MemprofilerPprof::Report::Style]
        # @param height [Integer] in lines
        # @return [Array<String>] at most so many lines
        def lines(style, height)
          return @view.lines(style, height) if @view

          filled = [title, "", *body(style, height)].first(height - 1)
          [*filled, *[""] * (height - 1 - filled.size), @memory.help || HELP].first(height)
        end

        private

        def body(style, height)
          return [@problem || "Waiting for the first profiles ..."] if @answers.empty?
          return table(style, height - 4) unless @memory.open?

          memories = processes.rows.map { |row| row.totals&.memory }
          @memory.lines(memories, style, height - 3)
        end

        def pause = @paused = !@paused
        def up = move(-1)
        def down = move(1)
        def previous_order = order(-1)
        def next_order = order(1)
        def show_memory = @memory.open

        def move(step)
          @selected = selected_after(step)
        end

        def choose
          @chosen = selected_after(0) or return
          @view = View.new("#{@chosen}#{@heading[/  .*/]}", sort: @sort, help: VIEW_HELP, **@options, &@narrow)
          show(@answers[@chosen])
        end

        # A process keeps being selected wherever it moves in the table.
        def selected_after(step)
          addresses = processes.rows.map(&:address)
          return if addresses.empty?

          addresses[((addresses.index(@selected) || 0) + step).clamp(0, addresses.size - 1)]
        end

        def show(answer)
          answer.is_a?(Exception) ? @view.problem = answer.message : @view.profile = answer
        end

        def order(step)
          orders = MemprofilerPprof::Report::Activity::ORDERS
          @sort = orders[(orders.index(@sort) + step) % orders.size]
          @processes = nil
        end

        def processes
          @processes ||= Processes.new(@answers, by: @options[:by], sort: @sort) do |profile|
            profile = @narrow.call(profile)
            @options[:app] ? profile.without_libraries : profile
          end
        end

        # The part of the table that has the selected process.
        def table(style, rows)
          @selected = selected_after(0)
          index = processes.rows.index { |row| row.address == @selected }
          first = [index - [rows - 2, 1].max + 1, 0].max
          processes.lines(style, first...(first + [rows - 2, 1].max), chosen: @selected)
        end

        def title
          [@heading, Processes.count(@answers), *@time&.strftime("%T"), *("PAUSED" if @paused),
           *(@problem if @answers.any?)].join("  ")
        end
      end
    end
  end
end
