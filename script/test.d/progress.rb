# frozen_string_literal: true

require "io/console"

module TestRun
  # Shows the progress: on a terminal in one line that changes, elsewhere in a line now and then. Failures are shown
  # immediately.
  class Progress
    # @param output [IO]
    # @param period [Numeric] seconds between two lines if there is no terminal
    def initialize(output, period:)
      @output = output
      @period = period
      @began = @shown = now
      @failed = 0
    end

    # Shows the new failures of a job.
    # @param job [Job]
    def news(job)
      return unless job.is_a?(SpecJob)

      job.news.each do |failure|
        @failed += 1
        say("#{failure.text}\n  #{job.lane.prefix}rspec '#{failure.id}'")
      end
    end

    # @param job [Job] has ended
    def ended(job)
      news(job)
      if job.broken?
        @failed += 1
        say("#{job.failure}
  #{job.command_line}")
      elsif !job.is_a?(SpecJob)
        say("#{clock}  #{job.success}")
      end
    end

    # @param jobs [Array<Job>] all
    # @param running [Array<Job>]
    def show(jobs, running)
      return if !@output.tty? && now - @shown < @period

      @shown = now
      line = [clock, *lanes(jobs), commands(running), ("#{@failed} failed" if @failed.positive?)].compact.join("  ")
      @output.print(@output.tty? ? "\r\e[K#{line[0, @output.winsize.last - 1]}" : "#{line}\n")
      @output.flush
    end

    # @return [Float] seconds since the start
    def elapsed
      now - @began
    end

    # Prints complete lines.
    def say(text)
      @output.print("\r\e[K") if @output.tty?
      @output.puts(text)
      @output.flush
    end

    private

    def lanes(jobs)
      jobs.grep(SpecJob).group_by(&:lane).map do |lane, all|
        "#{lane.name} #{all.sum(&:done)}/#{all.sum(&:planned)}"
      end
    end

    def commands(running)
      names = running.grep_v(SpecJob).map(&:status)
      "[#{names.join(", ")}]" if names.any?
    end

    def clock
      format("%d:%02d", *elapsed.divmod(60))
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
