# frozen_string_literal: true

require_relative "pairs"
require_relative "workload"

# What {Bench::SamplingSection} and {Bench::TimerSection} need of worker.rb.
module Measurements
  # With the complement of a thread's number above it, this is the id of the thread's CPU clock on Linux.
  THREAD_CPU_CLOCK = 0b110
  private_constant :THREAD_CPU_CLOCK

  class << self
    # What the {Variants} cost, each of which starts anew with each block.
    def pairs(spec)
      require_relative "variants"
      compare(spec, Variants.new(max_heap_samples: Subject::BOUND))
    end

    # What windows cost that have been used for a while and go on with each block, compared with the collector stopped.
    def resumed(spec)
      require_relative "variants"
      variants = Variants.new(:windows, keep: true, max_heap_samples: Subject::BOUND)
      variants.measure(:windows) do
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + spec[:seconds]
        Workload.run(spec, spec[:block]) until Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      end
      compare(spec, variants)
    end

    # CPU time while nothing happens, after some work.
    def idle(spec)
      Workload.run({ load: "requests" }, 1000)
      GC.start
      { nsecs: cpu_nsecs { sleep(spec[:seconds]) } }
    end

    # CPU time of the threads that the profiler has started, under load.
    def timer(spec)
      clocks = (threads - @threads).map { |number| (~number << 3) | THREAD_CPU_CLOCK }
      raise "the profiler has no thread" if clocks.empty?

      before = clocks.sum { |clock| Process.clock_gettime(clock, :nanosecond) }
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + spec[:seconds]
      Workload.run({ load: "requests" }, 100) until Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      { nsecs: clocks.sum { |clock| Process.clock_gettime(clock, :nanosecond) } - before }
    end

    # Must be called before the profiler starts, if {timer} is to be measured.
    def note_threads
      @threads = threads
    end

    private

    # @return [Hash] CPU nanoseconds per unit of work of each variant, by round
    def compare(spec, variants)
      block = ->(name) { variants.measure(name) { Workload.run(spec, spec[:block]) } }
      # Caches fill, and code is compiled, with each of them.
      variants.names.each(&block)
      random = Random.new(1)
      rounds = Array.new(spec[:rounds]) do
        figures = Bench::Pairs.order(variants.names, random).map { |name| [name, block.call(name)] }
        figures.group_by(&:first).transform_values { |pair| pair.sum(&:last).fdiv(pair.size * spec[:block]) }
      end
      { rounds: rounds }
    end

    # The native threads of this process, on Linux.
    def threads
      Dir.children("/proc/self/task").map(&:to_i)
    end
  end
end
