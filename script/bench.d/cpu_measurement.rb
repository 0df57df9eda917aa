# frozen_string_literal: true

require_relative "pairs"
require_relative "workload"

# What {Bench::CPUSection} needs of worker.rb.
module Measurements
  # Requests after a start, before CPU time is measured: a profile's tables are new.
  WARM_UP = 150

  class << self
    # CPU nanoseconds per request, by round, with CPU time sampled as the variants say. A start and a flush are not part
    # of it, but the signals and the reading of stacks are.
    def cpu_pairs(spec)
      require "ruby_memprofiler_pprof"
      variants = { nothing: nil, **spec[:frequencies].to_h { |frequency| [:"hz#{frequency}", frequency] } }
      collector = MemprofilerPprof::Collector.new(sampling: :always)
      heap = { heap: nil, both: spec[:frequencies].first }
      block = lambda do |name|
        collector.start if heap.key?(name)
        cpu_block(spec, variants.merge(heap)[name])
      ensure
        collector.stop.flush if heap.key?(name)
      end
      rounds = under(spec[:depth]) { pair_rounds(variants.keys + heap.keys, spec, &block) }
      { rounds: rounds }
    end

    private

    def pair_rounds(names, spec, &block)
      names.each(&block)
      random = Random.new(1)
      Array.new(spec[:rounds]) do
        figures = Bench::Pairs.order(names, random).map { |name| [name, block.call(name)] }
        figures.group_by(&:first).transform_values { |pair| pair.sum(&:last).fdiv(pair.size * spec[:block]) }
      end
    end

    def cpu_block(spec, frequency)
      MemprofilerPprof::CPU.start(frequency: frequency) if frequency
      Workload.run(spec, WARM_UP)
      GC.start(full_mark: false)
      cpu_nsecs { Workload.run(spec, spec[:block]) }
    ensure
      if frequency
        MemprofilerPprof::CPU.stop
        MemprofilerPprof::CPU.flush
      end
    end

    def under(depth, &)
      depth > 1 ? under(depth - 1, &) : yield
    end
  end
end
