# frozen_string_literal: true

require_relative "load"
require_relative "pairs"
require_relative "report"

module Bench
  # Measures a server with each of the {Variants} in rounds of short turns ({Pairs}). Each turn serves the same
  # requests, after a garbage collection, so that steady growth, such as the app's leak, cancels out.
  class Turns
    # How many times as many requests as a turn has are served before a flush is measured.
    BEFORE_FLUSH = 10
    private_constant :BEFORE_FLUSH

    # @return [Array<Symbol>] the server's
    attr_reader :variants

    # @param variants [Array<Symbol>, nil] nil for all that sample no CPU time
    def initialize(server, variants = nil, **load)
      @server = server
      @load = Load.new(server.port, **load)
      @variants = variants || server.send_command("variants").map(&:to_sym)
      @random = Random.new(1)
    end

    # Caches fill, and the profiler's code is read, before measuring.
    #
    # @param past [Numeric] for how many seconds the last variant is on, at least
    def warm_up(past)
      @variants.each { |variant| turn(variant) }
      on(@variants.last) do
        deadline = Bench.clock + past
        @load.run until Bench.clock > deadline
      end
    end

    # @return [Hash{Symbol => Hash}] by variant: CPU seconds per request and requests per second, and the duration of
    #   requests in seconds
    def round
      turns = Pairs.order(@variants, @random).map { |variant| [variant, turn(variant)] }
      turns.group_by(&:first).transform_values { |pairs| sum(pairs.map(&:last)) }
    end

    # @return [Hash{Symbol => Float}] CPU seconds of a flush, by the variants that have any
    def flushes
      (@variants & %i[always windows]).to_h do |variant|
        on(variant) do
          BEFORE_FLUSH.times { @load.run }
          [variant, @server.send_command("flush #{variant}")[:cpu]]
        end
      end
    end

    private

    def on(variant)
      @server.send_command("on #{variant}")
      result = yield
      @server.send_command("off #{variant}")
      result
    end

    def turn(variant)
      on(variant) do
        @server.send_command("settle")
        before = @server.send_command("read")
        start = Bench.clock
        took = @load.run
        wall = Bench.clock - start
        after = @server.send_command("read")
        { cpu: after[:cpu] - before[:cpu], wall: wall, took: took, megabytes: after[:megabytes] }
      end
    end

    def sum(turns)
      took = turns.flat_map { |turn| turn[:took] }.sort
      cpu, wall = %i[cpu wall].map { |key| turns.sum { |turn| turn[key] } }
      { cpu: cpu / took.size, throughput: took.size / wall, p50: took[took.size / 2],
        p99: took[took.size * 99 / 100], megabytes: turns.map { |turn| turn[:megabytes] }.max }
    end
  end
end
