# frozen_string_literal: true

require "empty_hooks"
require "ruby_memprofiler_pprof"

# What is compared with each other in one process: nothing on, an allocation hook that does nothing, and the profiler
# with each kind of sampling; or nothing on, and CPU time sampled so many times a second.
class Variants
  # Options of collectors. In windows at that rate hardly any samples are taken: what is left is what windows cost.
  COLLECTORS = { always: { sampling: :always }, windows: { sampling: :windows },
                 bare_windows: { sampling: :windows, sample_rate: 0.0001 } }.freeze
  FREQUENCIES = { cpu100: 100, cpu1000: 1000 }.freeze
  private_constant :COLLECTORS

  # @return [Array<Symbol>] those that sample no CPU time, and that this Ruby has
  attr_reader :names

  # @param collectors [Array<Symbol>] the kinds of sampling
  # @param options [Hash{Symbol => Object}] of the collectors
  def initialize(*collectors, **options)
    collectors = %i[always windows] if collectors.empty?
    @collectors = COLLECTORS.slice(*collectors).transform_values do |kind|
      MemprofilerPprof::Collector.new(sample_rate: 0.01, **kind, **options)
    end
    @names = [:nothing, :hook, *@collectors.filter_map { |name, collector| name if samples_so?(name, collector.stats) }]
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
    raise "sampling was not #{name}: #{stats}" unless samples_so?(name, stats) && stats[:running]
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

  def samples_so?(name, stats)
    stats[:sampling] == COLLECTORS.fetch(name)[:sampling]
  end

  def cpu_off
    raise "CPU time was not sampled" unless MemprofilerPprof::CPU.running?

    MemprofilerPprof::CPU.stop
    MemprofilerPprof::CPU.flush
  end
end
