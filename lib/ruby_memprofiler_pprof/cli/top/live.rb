# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/top/screen"
require "ruby_memprofiler_pprof/cli/top/view"

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # Shows a view on a screen until the user quits, and keeps it up to date.
      class Live
        # Signals that end it. The process then dies of that signal, except for Ctrl-C's, after which it exits normally.
        ENDS = %w[INT TERM HUP QUIT].freeze
        SIGNALS = [*ENDS, "TSTP", "CONT", "WINCH"].freeze
        # Seconds before a failed fetch is tried again.
        PAUSE = 1
        private_constant :ENDS, :SIGNALS, :PAUSE

        # @param screen [Screen]
        # @param view [View]
        # @param color [Boolean]
        # @param ask [#call, nil] waits for who holds what a question is about, see {Collector#retainers}
        # @param fetch [Proc] waits for the next profile
        def initialize(screen, view, color:, ask: nil, &fetch)
          @screen = screen
          @view = view
          @color = color
          @ask = ask
          @fetch = fetch
          @signals = []
          @wanted = Queue.new
          @answers = Queue.new
          @told = Queue.new
          @waiting, @wake = IO.pipe
        end

        # @return [void]
        # @raise [Source::Unavailable] if there is not even a first profile
        def run
          previous = SIGNALS.to_h { |name| [name, trap(name)] }
          @fetcher = Thread.new { fetch }
          begin
            @screen.open
            want
            loop_until_left
          ensure
            @screen.close
            # Closing the queue ends the thread, too, where Ruby loses the kill because it reached a finalizer.
            [@fetcher, *@asker].each(&:kill)
            @wanted.close
            previous.each { |name, handler| Signal.trap(name, handler || "DEFAULT") }
          end
          die if @end && @end != "INT"
        end

        private

        def trap(name)
          Signal.trap(name) do
            @signals << name
            wake
          end
        end

        # If the pipe is full, what is in it wakes the loop anyway.
        def wake
          @wake.write_nonblock(".", exception: false)
        end

        def fetch
          while @wanted.pop
            @answers << answer
            wake
          end
        end

        def answer
          @fetch.call
        rescue StandardError => e
          e
        end

        def want
          @outstanding = true
          @wanted << true
        end

        def loop_until_left
          until @left
            draw
            # No timeout in a pause, in which nothing is tried again.
            timeout = [@retry_at - now, 0].max if @retry_at && !@view.paused?
            IO.select([@screen.input, @waiting], nil, nil, timeout)
            handle
          end
        end

        def handle
          @waiting.read_nonblock(256, exception: false)
          react(@signals.shift) until @signals.empty?
          take(@answers.pop) until @answers.empty?
          @view.answer(*@told.pop) until @told.empty?
          keys = @screen.keys
          # The terminal was closed.
          return @left = true if keys.nil?

          keys.each { |key| press(key) }
          request
        end

        # Asks for the next profile once the last one has arrived, except in a pause.
        def request
          return if @outstanding || @view.paused? || (@retry_at && now < @retry_at)

          @retry_at = nil
          want
        end

        def press(key)
          return @left = true if key == "q" && !@view.typing?

          @view.press(key)
          question = @view.question
          ask(question) if question
        end

        # In the background: an answer may take long.
        def ask(question)
          @asker&.kill
          @asker = Thread.new do
            answer = @ask.call(question)
          rescue StandardError => e
            answer = e
          ensure
            @told << [question, answer] if answer
            wake
          end
        end

        def react(name)
          case name
          when *ENDS
            @end = name
            @left = true
          when "TSTP" then suspend
          when "CONT" then @screen.prepare
          end
        end

        def suspend
          @screen.close
          Process.kill(:STOP, Process.pid)
          # The shell has sent SIGCONT: this process continues here, and takes the screen again.
          @screen.open
        end

        def take(answer)
          @outstanding = false
          case answer
          when Source::Unavailable, ProfileError
            raise answer unless @seen

            @view.problem = answer.message
            @retry_at = now + PAUSE
          when Exception then raise answer
          else
            @seen = true
            @view.profile = answer unless @view.paused?
          end
        end

        def draw
          height, width = @screen.size
          @screen.draw(@view.lines(MemprofilerPprof::Report::Style.new(width, @color), height))
        end

        def die
          Signal.trap(@end, "DEFAULT")
          Process.kill(@end, Process.pid)
          sleep
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
