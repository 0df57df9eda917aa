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
    def warm_up
      @variants.each { |variant| turn(variant) }
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
        @server.send_command("on #{variant}")
        BEFORE_FLUSH.times { @load.run }
        cpu = @server.send_command("flush #{variant}")[:cpu]
        @server.send_command("off #{variant}")
        [variant, cpu]
      end
    end

    private

    def turn(variant)
      @server.send_command("on #{variant}")
      @server.send_command("settle")
      before = @server.send_command("read")
      start = Bench.clock
      took = @load.run
      wall = Bench.clock - start
      after = @server.send_command("read")
      @server.send_command("off #{variant}")
      { cpu: after[:cpu] - before[:cpu], wall: wall, took: took, megabytes: after[:megabytes] }
    end

    def sum(turns)
      took = turns.flat_map { |turn| turn[:took] }.sort
      cpu, wall = %i[cpu wall].map { |key| turns.sum { |turn| turn[key] } }
      { cpu: cpu / took.size, throughput: took.size / wall, p50: took[took.size / 2],
        p99: took[took.size * 99 / 100], megabytes: turns.map { |turn| turn[:megabytes] }.max }
    end
  end
end
