# frozen_string_literal: true

require "tmpdir"

module TestRun
  # Runs jobs, the longest first, several at a time; retries what failed because of its duration, once, alone.
  class Queue
    # Seconds between two checks of the running jobs.
    PERIOD = 0.1

    # @return [Array<Job>] those that have ended
    attr_reader :ended
    # @return [Array<Job>]
    attr_reader :running
    # @return [Array<SpecJob>] second tries
    attr_reader :again

    # @param jobs [Array<Job>]
    # @param at_once [Integer]
    # @param progress [Progress]
    def initialize(jobs, at_once:, progress:)
      @jobs = jobs
      @at_once = at_once
      @progress = progress
      @waiting = jobs.sort_by { |job| -job.expected }
      @running = []
      @ended = []
      @again = []
      @folder = Dir.mktmpdir
    end

    # Ends when all jobs have ended, or can never start.
    def run
      while work?
        while (job = ready)
          start(job)
        end
        look
        sleep PERIOD
      end
      @ended.grep(SpecJob).flat_map(&:second_tries).each { |again| run_alone(again) }
    ensure
      @running.each(&:kill)
      FileUtils.rm_rf(@folder)
    end

    private

    # Whether there is anything to wait for. Jobs whose needs have failed are not waited for.
    def work?
      @waiting.reject! { |job| job.needs.any? { |name| failed?(name) } }
      @waiting.any? || @running.any?
    end

    # The longest job that can start now.
    def ready
      full = @running.reject(&:light?).size >= @at_once
      @waiting.find { |job| (job.light? || !full) && job.needs.all? { |name| passed?(name) || !planned?(name) } }
    end

    def planned?(name)
      @jobs.any? { |job| job.name == name }
    end

    def passed?(name)
      @ended.any? { |job| job.name == name && job.passed? }
    end

    def failed?(name)
      @ended.any? { |job| job.name == name && !job.passed? }
    end

    def start(job)
      @waiting.delete(job)
      job.start(Dir.mktmpdir(nil, @folder))
      @running << job
    end

    def look
      @running.each { |job| @progress.news(job) }
      over = @running.select(&:ended?)
      @running -= over
      @ended.concat(over)
      over.each { |job| @progress.ended(job) }
      @progress.show(@jobs, @running)
    end

    def run_alone(job)
      job.start(Dir.mktmpdir(nil, @folder))
      sleep PERIOD until job.ended?
      job.news
      @again << job
    end
  end
end
