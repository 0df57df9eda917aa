# frozen_string_literal: true

require "empty_hooks"
require "ruby_memprofiler_pprof"

# What is compared with each other in one process: nothing on, an allocation hook that does nothing, and the profiler
# with each kind of sampling; or nothing on, and CPU time sampled so many times a second.
class Variants
  FREQUENCIES = { cpu100: 100, cpu1000: 1000 }.freeze

  # @return [Array<Symbol>] those that sample no CPU time, and that this Ruby has
  attr_reader :names

  # @param kinds [Array<Symbol>] of sampling
  # @param keep [Boolean] whether a collector that is off is only stopped: it follows deaths, and goes on when it is on
  #   again with what it knows of the program
  # @param options [Hash{Symbol => Object}] of the collectors
  def initialize(*kinds, keep: false, **options)
    kinds = %i[always windows] if kinds.empty?
    @keep = keep
    @collectors = kinds.to_h do |kind|
      [kind, MemprofilerPprof::Collector.new(sample_rate: 0.01, sampling: kind, **options)]
    end
    @names = [:nothing, :hook, *@collectors.filter_map { |kind, collector| kind if collector.stats[:sampling] == kind }]
  end

  # @return [Collector, nil]
  def collector(name)
    @collectors[name]
  end

  def on(name)
    EmptyHooks.raw_newobj if name == :hook
    MemprofilerPprof::CPU.start(frequency: FREQUENCIES[name]) if FREQUENCIES.key?(name)
    collector(name)&.start
    nil
  end

  # The flush removes the last hook. Fails unless the right thing was on.
  def off(name)
    EmptyHooks.raw_off if name == :hook
    cpu_off if FREQUENCIES.key?(name)
    return unless (collector = collector(name))

    stats = collector.stats
    collector.stop
    collector.flush unless @keep
    raise "sampling was not #{name}: #{stats}" unless stats[:sampling] == name && stats[:running]
  end

  # The block's CPU time in nanoseconds, that of all threads, with this variant on. What others leave behind is
  # collected before.
  def measure(name)
    on(name)
    GC.start(full_mark: false)
    before = self.class.cpu_nsecs
    yield
    self.class.cpu_nsecs - before
  ensure
    off(name)
  end

  # @return [Integer] CPU time of the process so far
  def self.cpu_nsecs
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  end

  private

  def cpu_off
    raise "CPU time was not sampled" unless MemprofilerPprof::CPU.running?

    MemprofilerPprof::CPU.stop
    MemprofilerPprof::CPU.flush
  end
end
