# frozen_string_literal: true

require_relative "load"
require_relative "report"

module Bench
  # Measures a server with nothing on, with an allocation hook that does nothing, and with the profiler, in short turns.
  # Each turn serves the same requests, after a garbage collection; then the order is reversed, so that steady growth,
  # such as the app's leak, cancels out. Several such rounds are a group, whose last turn with the profiler includes a
  # flush.
  class Turns
    KINDS = %i[off hook on].freeze
    ORDER = (KINDS + KINDS.reverse).freeze
    ROUNDS = 3
    # The commands that begin and end a turn.
    SWITCHES = { off: [], hook: %i[hook unhook], on: %i[on off] }.freeze
    # Seconds between two flushes in production: the maximum total time of a group's turns with the profiler.
    INTERVAL = 30
    # Turns in which caches fill, and the profiler's code is read, before measuring.
    WARM_UP = %i[off on off].freeze
    # 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom; 1.96 is their limit.
    T = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13].freeze

    # The ratio of one kind of turn to another, with a 95 % interval over the groups.
    def self.ratio(groups, key, kind, base)
      logarithms = groups.map { |group| Math.log(group[kind][key] / group[base][key]) }
      mean = logarithms.sum / logarithms.size
      return { ratio: Math.exp(mean) } if logarithms.size < 2

      margin = margin_of(logarithms, mean)
      { ratio: Math.exp(mean), low: Math.exp(mean - margin), high: Math.exp(mean + margin) }
    end

    # Half the width of the 95 % interval of a mean.
    def self.margin_of(values, mean)
      variance = values.sum { |value| (value - mean)**2 } / (values.size - 1)
      T.fetch(values.size - 2, 1.96) * Math.sqrt(variance / values.size)
    end
    private_class_method :margin_of

    def initialize(server, **load)
      @server = server
      @load = Load.new(server.port, **load)
    end

    def warm_up
      WARM_UP.each { |kind| turn(kind) }
    end

    # @return [Hash{Symbol => Hash}] by kind of turn: CPU seconds and requests, and the duration of each request in
    #   seconds
    def group
      order = ORDER * ROUNDS
      last = order.rindex(:on)
      turns = order.each_with_index.map { |kind, index| [kind, turn(kind, flush: index == last)] }
      KINDS.to_h { |kind| [kind, sum(turns.filter_map { |of, figures| figures if of == kind })] }
    end

    private

    def turn(kind, flush: false)
      switch_on, switch_off = SWITCHES.fetch(kind)
      @server.send_command(switch_on) if switch_on
      @server.send_command(:settle)
      before = @server.send_command(:read)
      start = Bench.clock
      took = @load.run
      wall = Bench.clock - start
      @server.send_command(:flush) if flush
      after = @server.send_command(:read)
      @server.send_command(switch_off) if switch_off
      { cpu: after[:cpu] - before[:cpu], wall: wall, took: took, megabytes: after[:megabytes] }
    end

    def sum(turns)
      took = turns.flat_map { |turn| turn[:took] }.sort
      cpu, wall = %i[cpu wall].map { |key| turns.sum { |turn| turn[key] } }
      { requests: took.size, cpu: cpu / took.size, wall: wall, throughput: took.size / wall, p50: took[took.size / 2],
        p99: took[took.size * 99 / 100], megabytes: turns.map { |turn| turn[:megabytes] }.max }
    end
  end
end
