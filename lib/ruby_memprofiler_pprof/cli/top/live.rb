# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/top/screen"
require "ruby_memprofiler_pprof/cli/top/view"

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # Shows a view on a screen, until it is left.
      class Live
        # What leaves it. The process then ends by the signal, but for that of Ctrl-C.
        ENDS = %w[INT TERM HUP QUIT].freeze
        SIGNALS = [*ENDS, "TSTP", "CONT", "WINCH"].freeze
        # Seconds until it is tried again to get a profile.
        PAUSE = 1
        private_constant :ENDS, :SIGNALS, :PAUSE

        # @param screen [Screen]
        # @param view [View]
        # @param color [Boolean]
        # @param fetch [Proc] waits for the next profile
        def initialize(screen, view, color:, &fetch)
          @screen = screen
          @view = view
          @color = color
          @fetch = fetch
          @signals = []
          @wanted = Queue.new
          @answers = Queue.new
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
            # It ends by the latter, too, if Ruby forgets the kill because it meets the thread in a finalizer.
            @fetcher.kill
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

        # A full pipe has not been read yet, so that it will be woken anyway.
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
            timeout = @retry_at && [@retry_at - now, 0].max
            IO.select([@screen.input, @waiting], nil, nil, timeout)
            handle
          end
        end

        def handle
          @waiting.read_nonblock(256, exception: false)
          react(@signals.shift) until @signals.empty?
          take(@answers.pop) until @answers.empty?
          keys = @screen.keys
          # The terminal is gone.
          return @left = true if keys.nil?

          keys.each { |key| press(key) }
          request
        end

        # The next profile is asked for when the last one has come, and in a pause not at all.
        def request
          return if @outstanding || @view.paused? || (@retry_at && now < @retry_at)

          @retry_at = nil
          want
        end

        def press(key)
          return @left = true if key == "q" && !@view.typing?

          @view.press(key)
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
          # Goes on here.
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
