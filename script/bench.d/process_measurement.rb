# frozen_string_literal: true

require "tmpdir"

# What {Bench::ProcessSection} needs of worker.rb.
module Measurements
  # How long a process does nothing before that counts as rest.
  REST = 4
  private_constant :REST

  class << self
    # Megabytes that the gem takes, and those after three flushes.
    def process_memory(spec)
      before = settled
      require "ruby_memprofiler_pprof"
      required = settled - before
      Dir.mktmpdir do |directory|
        MemprofilerPprof.start(**writing(directory), **spec[:options])
        3.times { MemprofilerPprof.flush }
        { required: required, all: settled - before }
      end
    end

    # CPU time of the thread that watches memory so far below the level.
    def watch(spec)
      require "ruby_memprofiler_pprof"
      Dir.mktmpdir do |directory|
        MemprofilerPprof.start(**writing(directory), dump_above: false)
        level = resident_bytes + spec[:room]
        MemprofilerPprof.stop
        MemprofilerPprof.start(**writing(directory), dump_above: level)
        sleep(REST)
        watched(spec[:seconds])
      end
    end

    private

    def writing(directory)
      { pattern: File.join(directory, "%{pid}-%{isotime}.pprof"), interval: 600 }
    end

    def settled
      GC.start
      resident_bytes / 1e6
    end

    def watched(seconds)
      task = Dir.glob("/proc/self/task/*").find { |path| File.read("#{path}/comm").start_with?("memprofiler-oom") }
      before = time_and_looks(task)
      sleep(seconds)
      milliseconds, looks = time_and_looks(task).zip(before).map { |now, former| (now - former).fdiv(seconds) }
      { percent: milliseconds / 10, looks: looks }
    end

    def time_and_looks(task)
      clock = (~File.basename(task).to_i << 3) | THREAD_CPU_CLOCK
      [Process.clock_gettime(clock, :float_millisecond),
       File.read("#{task}/status")[/^voluntary_ctxt_switches:\s+(\d+)/, 1].to_i]
    end
  end
end
