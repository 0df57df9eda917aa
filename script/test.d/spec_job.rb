# frozen_string_literal: true

require "json"
require_relative "job"

module TestRun
  # A process of rspec, with examples of one lane.
  class SpecJob < Job
    # Seconds without any event after which an example is considered hung.
    PATIENCE = 600
    # An example that has failed: its id, rspec's report, and whether its subject is time.
    Failure = Struct.new(:id, :text, :timing, keyword_init: true)

    # @return [Lane]
    attr_reader :lane
    # @return [Array<String>] spec files, or one example's id
    attr_reader :files
    # @return [Integer] how many examples are to run
    attr_reader :planned
    # @return [Integer] how many have ended so far
    attr_reader :done, :pending
    # @return [Array<Failure>]
    attr_reader :failures

    # @param batch [Plan::Batch]
    def initialize(batch, seed:, slow:)
      @lane = batch.lane
      @files = batch.files
      @planned = batch.examples
      @seed = seed
      @slow = slow
      @done = @pending = 0
      @failures = []
      @times = Hash.new(0.0)
      @filter = lane.filter(slow: slow)
      super(lane.name, [*rspec, "--require", "#{__dir__}/event_formatter", "--format", "EventFormatter",
                        "--format", "progress"],
            expected: batch.seconds, needs: lane.needs, urgent: lane.urgent)
    end

    def start(folder)
      path = File.join(folder, "events")
      @events = File.open(path, File::CREAT | File::RDONLY)
      @heard = now
      super
    end

    # Reads the new events.
    # @return [Array<Failure>] the new ones
    def news
      before = @failures.size
      while (line = @events.gets)
        @partial = "#{@partial}#{line}"
        break unless @partial.end_with?("\n")

        take(JSON.parse(@partial, symbolize_names: true))
        @partial = nil
        @heard = now
      end
      @failures.drop(before)
    end

    # @return [Hash{String => Float}] seconds by file. Alone in its process, a file takes as long as the process.
    def times
      @times.size == 1 ? @times.transform_values { seconds } : @times
    end

    def ended?
      kill if now - @heard > PATIENCE
      super
    end

    # Everything planned has run, and passed.
    def passed?
      super && @failures.empty? && @done == @planned
    end

    def broken?
      !passed? && (@failures.empty? || @done < @planned)
    end

    def failure
      at = " in #{@current}" if @current
      "#{output}\n#{name}: #{@done} of #{@planned} examples ran, then it ended#{at}: #{@status}"
    end

    # @return [Array<SpecJob>] one for each failure whose subject is time
    def second_tries
      @failures.select(&:timing).map do |failure|
        batch = Plan::Batch.new(lane: lane, files: [failure.id], examples: 1, seconds: 0)
        SpecJob.new(batch, seed: @seed, slow: @slow)
      end
    end

    def command_line
      "#{lane.prefix}#{rspec.drop(2).shelljoin}"
    end

    private

    def environment
      { **lane.environment, "TEST_RUN_EVENTS" => @events.path }
    end

    def rspec
      [RbConfig.ruby, "-S", "rspec", *@filter, "--seed", @seed.to_s, *@files]
    end

    def take(event)
      case event[:event]
      # Some examples only exist in some environments.
      when "start" then @planned = event[:count]
      when "started" then @current = event[:id]
      else finished(event)
      end
    end

    def finished(event)
      @current = nil
      @done += 1
      @times[event[:file]] += event[:seconds]
      @pending += 1 if event[:event] == "pending"
      @failures << Failure.new(**event.slice(:id, :text, :timing)) if event[:event] == "failed"
    end
  end
end
