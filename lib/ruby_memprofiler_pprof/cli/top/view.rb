# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/top/holders"
require "ruby_memprofiler_pprof/cli/top/memory_panel"
require "ruby_memprofiler_pprof/cli/top/prompt"

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # The contents of the screen, and how keys change them. Knows nothing of terminals.
      class View
        # In the order in which Tab goes through them.
        GROUPINGS = %i[class line method file gem].freeze
        KEYS = { "p" => :pause, " " => :pause, "a" => :toggle_app, :left => :previous_order, "<" => :previous_order,
                 :right => :next_order, ">" => :next_order, :tab => :next_grouping, "/" => :ask, :escape => :show_all,
                 "w" => :choose, "m" => :show_memory, up: :up, down: :down, page_up: :page_up, page_down: :page_down,
                 home: :home }.freeze
        HELP = "q quit  p pause  Left/Right sort  Tab class, line, ...  a app  / filter  w holders  m memory  " \
               "Up/Down scroll"
        # @param heading [String]
        # @param by [Symbol]
        # @param sort [Symbol]
        # @param app [Boolean] whether what libraries allocate counts for the program's own lines
        # @param help [String] the last line
        # @param narrow [Proc] selects the samples of a profile
        def initialize(heading, by:, sort:, app:, help: HELP, &narrow)
          @heading = heading
          @by = by
          @sort = sort
          @app = app
          @help = help
          @narrow = narrow
          @first = 0
          @page = 1
          @paused = false
          @prompt = Prompt.new
          @holders = Holders.new
          @memory = MemoryPanel.new
        end

        # @return [Boolean]
        def paused?
          @paused
        end

        # @return [Boolean] whether characters are part of a filter
        def typing?
          @prompt.open?
        end

        # @return [Hash{Symbol => String}, nil] see {Holders#question}
        def question
          @holders.question
        end

        # @return [void] see {Holders#answer}
        def answer(...)
          @holders.answer(...)
        end

        # @param text [String] why there is no newer profile
        def problem=(text)
          @problem = MemprofilerPprof::Report::SiteText.printable(text)
        end

        # @param profile [Profile]
        def profile=(profile)
          @problem = nil
          @totals = MemprofilerPprof::Report::Totals.new(profile)
          @profile = @narrow.call(profile)
          @activity = nil
        end

        # @param key [Symbol, String]
        # @return [void]
        def press(key)
          @activity = nil
          return @prompt.press(key) if typing?
          return @holders.press(key, @by, activity.rows) if @holders.state
          return if @memory.press(key)

          action = self.class::KEYS[key]
          __send__(action) if action
        end

        # @param style [MemprofilerPprof::Report::Style]
        # @param height [Integer] in lines
        # @return [Array<String>] at most so many lines
        def lines(style, height)
          return [title, "", @problem || "Waiting for the first profile ..."].first(height) unless @profile

          body = body(style, height - 1)
          help = @prompt.line || @holders.help || @memory.help || @help
          [*body, *[""] * (height - 1 - body.size), help].first(height)
        end

        private

        def pause = @paused = !@paused
        def toggle_app = @app = !@app
        def previous_order = order(-1)
        def next_order = order(1)
        def next_grouping = @by = neighbour(self.class::GROUPINGS, @by, 1)
        def ask = @prompt.open
        def show_all = @prompt.clear
        def up = @first -= 1
        def down = @first += 1
        def page_up = @first -= @page
        def page_down = @first += @page
        def home = @first = 0
        def report = MemprofilerPprof::Report::Activity
        def choose = @profile && @holders.open(@first)
        def show_memory = @profile && @memory.open

        def order(step)
          @sort = neighbour(report::ORDERS, @sort, step)
        end

        def neighbour(list, member, step)
          list[(list.index(member).to_i + step) % list.size]
        end

        def body(style, height)
          panel = panel(style, height - 2)
          return [title, "", *panel].first([height, 0].max) if panel

          head = [title, *activity.summary(style), *@totals.lines.first, ""]
          # Two more lines: the one about the table, and the table's titles.
          scroll(height - head.size - 2)
          table = table(style)
          [*head, about(table.size - 1), *table].first([height, 0].max)
        end

        # What takes the place of the table, if anything does.
        def panel(style, height)
          return @holders.lines(style, height) if @holders.shown?

          @memory.lines([@totals.memory], style, height) if @memory.open?
        end

        def table(style)
          rows = @first...(@first + @page)
          return activity.lines(style, rows) unless @holders.choosing?

          narrower = MemprofilerPprof::Report::Style.new(style.width - 2, style.color)
          @holders.mark(activity.lines(narrower, rows), @first)
        end

        # To where the chosen row is visible, if one is being chosen.
        def scroll(page)
          @page = [page, 1].max
          @first = @first.clamp(@holders.row - @page + 1, @holders.row) if @holders.choosing?
          @first = @first.clamp(0, [activity.rows.size - @page, 0].max)
        end

        def activity
          @activity ||= begin
            profile = @app ? @profile.without_libraries : @profile
            report.new(profile, by: @by, sort: @sort, matching: @prompt.pattern)
          end
        end

        def time = @profile&.time

        def title
          pid = @totals && @totals["pid"]
          [@heading, *("pid #{pid}" if pid), *time&.strftime("%T"), *("PAUSED" if @paused),
           *(@problem if @profile)].join("  ")
        end

        def about(shown)
          rows = "#{[@first + 1, @first + shown].min}-#{@first + shown} of #{activity.rows.size} by #{@by}"
          low = MemprofilerPprof::Report::Activity::LOW_CONFIDENCE
          [rows, "sorted by *", *("app only" if @app), *("matching #{@prompt.text}" if @prompt.pattern),
           "#{low} fewer than ten samples"].join(", ")
        end
      end
    end
  end
end
