# frozen_string_literal: true

require_relative "section"

module Bench
  # Common to sections about a heap full of samples: rate 1.0, D=50, both modes.
  class HeapSection < Section
    NOT_ON = "nothing on"

    def rows(...)
      [row(...)]
    end

    private

    def job(label, **spec)
      liveness = spec[:liveness]
      Job.new("#{name} #{label}#{" liveness=#{liveness}" if liveness}",
              { kind: name, subject: liveness ? "gem" : "nothing", rate: 1.0, depth: 50, bt_method: "cfp", **spec })
    end

    def milliseconds(figures, *keys)
      Bench.spread(figures.map { |figure| figure.dig(*keys) / 1e6 }, 2)
    end
  end

  # Memory per live sample: according to `stats`, and how much more the process grows than without the profiler.
  class MemorySection < HeapSection
    LIVE = 300_000

    def initialize(**)
      super()
      @name = "memory"
      @title = "Memory per tracked object: #{Bench.number(LIVE)} live, rate 1.0, D=50"
      @header = ["liveness", "sites", "stats[:bytes] B", "live set B", "stacks B", "resident B", "target"]
    end

    def jobs
      [1, 10_000].flat_map do |sites|
        [nil, *Runner::LIVENESS].map { |liveness| job("sites=#{sites}", liveness: liveness, sites: sites, live: LIVE) }
      end
    end

    def needed_for(jobs)
      self.jobs.select { |job| jobs.any? && job.spec[:liveness].nil? }
    end

    def row(job, results, _)
      liveness, sites = job.spec.values_at(:liveness, :sites)
      figures = results[job.name]
      return [NOT_ON, Bench.number(sites), nil, nil, nil, nil, nil] unless liveness

      [liveness, Bench.number(sites), *own(figures), grown(figures, results["memory sites=#{sites}"]), "<= 48"]
    end

    private

    def own(figures)
      %i[bytes live_set_bytes stack_bytes].map do |part|
        Bench.spread(figures.map { |figure| figure[part].fdiv(figure[:live_samples]) }, 1)
      end
    end

    def grown(figures, bare)
      bare = Bench.median(bare.map { |figure| figure[:resident] })
      Bench.spread(figures.map { |figure| (figure[:resident] - bare) / LIVE }, 1)
    end
  end

  # Time, holds and size of a flush, for few and many live samples and stacks.
  class FlushSection < HeapSection
    LIVE = [10_000, 100_000, 1_000_000].freeze
    SITES = [1, 100, 10_000].freeze

    def initialize(quick:)
      super()
      @live = quick ? LIVE.first(2) : LIVE
      @name = "flush"
      @title = "Flush: rate 1.0, D=50, no GC meanwhile; the first names the frames, the next has the names"
      @header = ["live", "sites", "liveness", "first ms (min–max)", "its CPU ms", "next ms", "its CPU ms",
                 "longest hold: CPU ms", "by the clock", "profile bytes", "target"]
    end

    def jobs
      @live.product(SITES, Runner::LIVENESS).map do |live, sites, liveness|
        job("live=#{live} sites=#{sites}", liveness: liveness, live: live, sites: sites)
      end
    end

    def row(job, results, _)
      figures = results[job.name]
      [Bench.number(job.spec[:live]), Bench.number(job.spec[:sites]), job.spec[:liveness],
       *%i[first again].product(%i[nsecs cpu_nsecs]).map { |keys| milliseconds(figures, *keys) },
       longest_hold(figures, :hold_cpu_nsecs), longest_hold(figures, :hold_nsecs),
       Bench.number(Bench.median(figures.map { |figure| figure[:first][:bytes] })), target(job.spec)]
    end

    private

    def longest_hold(figures, clock)
      holds = figures.map { |figure| figure.values_at(:first, :again).map { |flush| flush[clock] }.max }
      Bench.spread(holds.map { |nsecs| nsecs / 1e6 }, 2)
    end

    def target(spec)
      return "flush <= 25 ms" if spec[:live] == 100_000 && spec[:sites] == 1

      "hold <= 1 ms" if spec[:live] == 1_000_000
    end
  end

  # A flush beside a thread that never waits: Ruby gives such a thread a tenth of a second each time.
  class ContentionSection < HeapSection
    LIVE = [100_000, 1_000_000].freeze

    def initialize(quick:)
      super()
      @live = quick ? LIVE.first(1) : LIVE
      @name = "contention"
      @title = "Flush beside a thread that never waits: rate 1.0, D=50, mark_bits, a flush that has the names"
      @header = ["live", "sites", "flush ms (min–max)", "GVL given up", "longest hold: CPU ms", "by the clock",
                 "longest wait of the other ms"]
    end

    def jobs
      @live.product([1, 10_000]).map do |live, sites|
        job("live=#{live} sites=#{sites}", liveness: "mark_bits", live: live, sites: sites)
      end
    end

    def row(job, results, _)
      figures = results[job.name]
      [*job.spec.values_at(:live, :sites).map { |count| Bench.number(count) }, milliseconds(figures, :nsecs),
       Bench.spread(figures.map { |figure| figure[:yields] }, 0),
       *%i[hold_cpu_nsecs hold_nsecs waited_nsecs].map { |key| milliseconds(figures, key) }]
    end
  end

  # What the collector adds to a garbage collection.
  class GcSection < HeapSection
    def initialize(quick:)
      super()
      @live = quick ? 100_000 : 500_000
      @name = "gc"
      @title = "GC with #{Bench.number(@live)} live samples: rate 1.0, D=50, CPU time; the collector's own part of it"
      @header = ["liveness", "sites", "minor ms (min–max)", "collector's ms", "marked",
                 "major ms (min–max)", "collector's ms", "marked"]
    end

    def jobs
      [1, 10_000].product([nil, *Runner::LIVENESS]).map do |sites, liveness|
        job("sites=#{sites}", liveness: liveness, live: @live, sites: sites)
      end
    end

    def row(job, results, _)
      figures = results[job.name]
      [job.spec[:liveness] || NOT_ON, Bench.number(job.spec[:sites]),
       *%i[minor major].flat_map { |kind| [milliseconds(figures, kind, :nsecs), *own(figures, kind, job)] }]
    end

    private

    def own(figures, kind, job)
      return [nil, nil] unless job.spec[:liveness]

      marked = Bench.median(figures.map { |figure| figure[kind][:marked] })
      [milliseconds(figures, kind, :mark_nsecs), Bench.number(marked)]
    end
  end
end
