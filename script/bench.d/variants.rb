# frozen_string_literal: true

require "empty_hooks"
require "ruby_memprofiler_pprof"

# What is compared with each other in one process: nothing on, an allocation hook that does nothing, and the profiler
# with each kind of sampling; or nothing on, and CPU time sampled so many times a second.
class Variants
  RATE = 0.01
  FREQUENCIES = { cpu100: 100, cpu1000: 1000 }.freeze
  private_constant :RATE

  # @return [Array<Symbol>] those that sample no CPU time, and that this Ruby has
  attr_reader :names

  # @param options [Hash{Symbol => Object}] of the collectors
  def initialize(**options)
    @collectors = %i[always windows].to_h do |sampling|
      [sampling, MemprofilerPprof::Collector.new(sample_rate: RATE, sampling: sampling, **options)]
    end
    @names = [:nothing, :hook, *@collectors.filter_map { |name, collector| name if collector.stats[:sampling] == name }]
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
    collector.stop.flush
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
