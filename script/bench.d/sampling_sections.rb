# frozen_string_literal: true

require_relative "pairs"
require_relative "section"

module Bench
  # Whether this Ruby can have sampling in windows.
  WINDOWS = Gem::Version.new(RUBY_VERSION) >= Gem::Version.new("3.3")

  # What each kind of sampling costs a program in CPU time and instructions, in the same process.
  class SamplingSection < Section
    # What is on, by the names of {Variants}.
    VARIANTS = { nothing: "nothing", hook: "empty raw hook NEWOBJ", always: "this gem, always",
                 windows: "this gem, in windows" }.freeze
    # The same where a collector goes on with each block. Stopped, it still follows deaths.
    RESUMED = { nothing: "this gem, stopped", hook: "empty raw hook NEWOBJ", windows: "in windows that go on" }.freeze
    # For how many seconds it was on before that, and how many times as long blocks are then: each has several windows.
    PAST = 15
    LONGER = 4
    # The programs: units of work in a block of 15 to 60 ms, in which a window or two open, and in the two runs whose
    # difference callgrind counts.
    LOADS = { "requests" => { block: 600, runs: [300, 1200] },
              "allocations" => { block: 600_000, runs: [100_000, 400_000] } }.freeze
    # Under callgrind programs are slower by about this factor; in a frame that is longer by it as much happens.
    SLOWDOWN = 30
    # What windows may cost, relative to nothing.
    TARGETS = { "requests" => "<= 1.010", "allocations" => "<= 1.040" }.freeze
    private_constant :LOADS, :SLOWDOWN, :TARGETS

    def initialize(quick:)
      super()
      @name = "sampling"
      @title = "Sampling at 1 %: requests to a small shop, and `Foo.new(i)` in a loop"
      @header = ["load", "on", "CPU ns (min–max)", "relative to the first (95 %)", "to the empty hook (95 %)", "target",
                 "instructions", "relative to nothing", "over nothing"]
      @rounds = quick ? 20 : 150
    end

    def jobs
      LOADS.flat_map do |load, sizes|
        anew = job("sampling #{load}", kind: "pairs", load: load, rounds: @rounds, **sizes)
        resumed = job("sampling #{load} resumed", kind: "resumed", load: load, rounds: @rounds / 2, seconds: PAST,
                                                  block: LONGER * sizes[:block])
        WINDOWS ? [anew, resumed] : [anew]
      end
    end

    # A process for each variant.
    def counted(jobs)
      jobs.reject { |job| resumed?(job) }.flat_map do |job|
        variants = WINDOWS ? SUBJECTS.keys : SUBJECTS.keys - [:windows]
        variants.map { |variant| job(counted_name(job, variant), **job.spec, **SUBJECTS.fetch(variant)) }
      end
    end

    def rows(job, results, instructions)
      rounds = results[job.name].flat_map { |figures| figures[:rounds] }
      names = resumed?(job) ? RESUMED : VARIANTS
      names.select { |variant, _| rounds.first.key?(variant) }.map do |variant, name|
        [job.spec[:load], name, *times(rounds, variant), (TARGETS[job.spec[:load]] if variant == :windows),
         *counts(job, variant, instructions)]
      end
    end

    private

    # The subjects of worker.rb.
    SUBJECTS = { nothing: { subject: "nothing" }, hook: { subject: "raw_newobj" },
                 always: { subject: "gem", sampling: "always" },
                 windows: { subject: "gem", sampling: "windows", window_frame: 0.03 * SLOWDOWN } }
               .transform_values { |spec| { rate: 0.01, liveness: "mark_bits", bt_method: "cfp", **spec } }.freeze
    private_constant :SUBJECTS

    def job(name, **spec)
      Job.new(name, { subject: "nothing", depth: 1, **spec })
    end

    def resumed?(job)
      job.spec[:kind] == "resumed"
    end

    def counted_name(job, variant)
      "#{job.name} #{variant}"
    end

    def times(rounds, variant)
      ratios = %i[nothing hook].map { |base| Pairs.text(Pairs.ratio(rounds, variant, base)) unless base == variant }
      [Bench.spread(rounds.map { |round| round[variant] }, 0), *ratios]
    end

    def counts(job, variant, instructions)
      mine, bare = [variant, :nothing].map { |which| instructions[counted_name(job, which)] }
      mine ? [Bench.number(mine), format("%.4f", mine / bare), format("%+d", (mine - bare).round)] : [nil, nil, nil]
    end
  end

  # CPU time of processes that do nothing, and of the thread that opens and closes windows.
  class TimerSection < Section
    TARGETS = { "idle" => "<= 1 ms", "timer" => "<= 0.2 %" }.freeze
    private_constant :TARGETS

    def initialize(quick:)
      super()
      @name = "timer"
      @seconds = quick ? 2 : 10
      @title = "CPU time in #{@seconds} s of doing nothing, and of the timer's thread under load"
      @header = ["what", "on", "CPU ms (min–max)", "% of a core", "target"]
    end

    def jobs
      windows = WINDOWS ? [%w[idle gem windows], %w[timer gem windows]] : []
      [%w[idle nothing], %w[idle gem always], *windows].map { |names| job(*names) }
    end

    def rows(job, results, _)
      cpu = results[job.name].map { |figure| figure[:nsecs] / 1e6 }
      target = TARGETS[job.spec[:kind]] if job.spec[:sampling] == "windows"
      [[job.spec[:kind], job.spec[:sampling] || "nothing", Bench.spread(cpu, 2),
        Bench.spread(cpu.map { |milliseconds| milliseconds / @seconds / 10 }, 3), target]]
    end

    private

    def job(kind, subject, sampling = nil)
      Job.new("timer #{kind} #{sampling || subject}",
              { kind: kind, subject: subject, sampling: sampling, rate: 0.01, seconds: @seconds,
                liveness: "mark_bits", bt_method: "cfp" }.compact)
    end
  end
end
