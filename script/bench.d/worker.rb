# frozen_string_literal: true

# Measures one configuration, given as JSON in the only argument, and prints the figures as JSON.

require "json"
require_relative "cpu_measurement"
require_relative "flush_memory_measurement"
require_relative "process_measurement"
require_relative "retainers_measurement"
require_relative "sampling_measurements"
require_relative "workload"

# What is on during the measurement: nothing, empty hooks or the profiler.
class Subject
  # Far above what the workloads keep alive: halved samples would not have the rate of their row.
  BOUND = 4_000_000

  def initialize(spec)
    @spec = { sampling: "always", **spec }
    case spec[:subject]
    when "nothing" then nil
    when "gem" then start_collector
    else
      require "empty_hooks"
      EmptyHooks.public_send(spec[:subject])
    end
  end

  attr_reader :collector

  # Fails unless the right thing was measured.
  def verify
    return unless @collector

    stats = @collector.stats
    asked = @spec.slice(:sampling, :bt_method, :liveness)
    # In windows it may be lower.
    asked[:effective_sample_rate] = @spec[:rate] unless stats[:sampling] == :windows
    asked.each do |figure, value|
      raise "#{figure} was #{stats[figure]} instead of #{value}: #{stats}" unless stats[figure].to_s == value.to_s
    end
    raise "the collector failed: #{stats}" if stats[:failure] || stats[:disarmed]
  end

  private

  def start_collector
    require "ruby_memprofiler_pprof"
    @collector = MemprofilerPprof::Collector.new(
      sample_rate: @spec[:rate], bt_method: @spec[:bt_method].to_sym, liveness: @spec[:liveness].to_sym,
      sampling: @spec[:sampling].to_sym, max_heap_samples: BOUND, seed: 1, **@spec.slice(:window_frame)
    )
    @collector.start
  end
end

# A thread that never waits voluntarily, and records how long it had to.
class Rival
  def initialize
    @running = true
    @thread = Thread.new { run }
    Thread.pass until @began
  end

  # @return [Integer] the longest wait in nanoseconds
  def finish
    @running = false
    @thread.value
  end

  private

  def run
    longest = 0
    @began = true
    last = clock
    while @running
      now = clock
      longest = now - last if now - last > longest
      last = now
    end
    longest
  end

  def clock
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end
end

# One method for each kind of measurement.
module Measurements
  # Objects and sites that are new at each garbage collection.
  YOUNG = 1000
  YOUNG_SITES = 10

  class << self
    # CPU time per allocation: the difference of two run lengths, after a third run that fills the heap.
    def allocation(spec)
      Workload.allocate_under(spec[:depth], spec[:few])
      GC.start
      few, many = [spec[:few], spec[:many]].map do |count|
        cpu_nsecs { Workload.allocate_under(spec[:depth], count) }
      end
      { nsecs: (many - few).fdiv(spec[:many] - spec[:few]) }
    end

    # A run for callgrind, which does the counting.
    def instructions(spec)
      Workload.run(spec, spec[:count])
      {}
    end

    def memory(spec)
      before = resident_bytes
      kept = Workload.keep_under(spec[:depth], spec[:live], spec[:sites])
      # Before anything else makes the heap grow.
      grown = resident_bytes - before
      stats = SUBJECT.collector&.stats
      { resident: grown, kept: kept.size,
        **(stats ? stats.slice(:bytes, :live_samples, :live_set_bytes, :stack_bytes) : {}) }
    end

    # The first flush looks up the frames' names, the second has them. Excludes the GC, which depends on the program's
    # heap.
    def flush(spec)
      kept = Workload.keep_under(spec[:depth], spec[:live], spec[:sites])
      GC.start
      GC.disable
      figures = %i[first again].to_h { |which| [which, flush_figures] }
      { kept: kept.size, **figures }
    end

    # A flush while another thread wants the CPU for itself, seen from both.
    def contention(spec)
      kept = Workload.keep_under(spec[:depth], spec[:live], spec[:sites])
      SUBJECT.collector.flush
      GC.start
      GC.disable
      rival = Rival.new
      figures = flush_figures
      { kept: kept.size, waited_nsecs: rival.finish, **figures }
    end

    def gc(spec)
      kept = Workload.keep_under(spec[:depth], spec[:live], spec[:sites])
      # After a few collections it has settled which objects are old and which are young.
      4.times { GC.start }
      { kept: kept.size, minor: collections(20, spec, full_mark: false), major: collections(10, spec, full_mark: true) }
    end

    private

    def flush_figures
      profile = nil
      cpu = cpu_nsecs { profile = SUBJECT.collector.flush }
      { nsecs: profile.flush_duration_nsecs, cpu_nsecs: cpu, hold_nsecs: profile.longest_gvl_hold_nsecs,
        hold_cpu_nsecs: profile.longest_gvl_hold_cpu_nsecs, yields: profile.gvl_proactive_yield_count,
        samples: profile.heap_samples_count, bytes: profile.pprof_data.bytesize }
    end

    # Medians. Before each collection, new methods allocate objects that live, so that there is something new to mark.
    def collections(count, spec, full_mark:)
      figures = Array.new(count) do
        Workload.define_sites(YOUNG_SITES)
        kept = Workload.keep_under(spec[:depth], YOUNG, YOUNG_SITES)
        collection(full_mark).merge(kept: kept.size)
      end
      %i[nsecs mark_nsecs marked].to_h { |key| [key, figures.map { |figure| figure[key] }.sort[count / 2]] }
    end

    def collection(full_mark)
      before = SUBJECT.collector&.last_mark_nsecs
      nsecs = cpu_nsecs { GC.start(full_mark: full_mark) }
      # If the figure has not changed, the GC had no reason to mark the collector.
      return { nsecs: nsecs, mark_nsecs: 0, marked: 0 } if SUBJECT.collector&.last_mark_nsecs == before

      { nsecs: nsecs, mark_nsecs: SUBJECT.collector.last_mark_nsecs, marked: SUBJECT.collector.mark_table_size }
    end

    def cpu_nsecs
      before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
      yield
      Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - before
    end

    def resident_bytes
      File.read("/proc/self/status")[/^VmRSS:\s*(\d+)/, 1].to_i * 1024
    rescue SystemCallError
      0
    end
  end
end

spec = JSON.parse(ARGV.fetch(0), symbolize_names: true)
Workload.define_sites(spec[:sites]) if spec[:sites]
Measurements.note_threads if spec[:kind] == "timer"
SUBJECT = Subject.new(spec)
puts JSON.generate(Measurements.public_send(spec[:kind], spec).tap { SUBJECT.verify })
$stdout.flush
# Exit handlers do not affect the figures, and take callgrind a long time.
exit!(true)
