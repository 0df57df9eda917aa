# frozen_string_literal: true

require_relative "pairs"
require_relative "section"

module Bench
  # What sampling CPU time costs, deep in a program, alone and together with the heap profiler.
  class CPUSection < Section
    FREQUENCIES = [100, 1000].freeze
    DEPTH = 40
    # Requests in a block of some 40 ms.
    BLOCK = 400
    VARIANTS = { nothing: "nothing", hz100: "CPU time at 100 Hz", hz1000: "CPU time at 1,000 Hz",
                 heap: "the heap, always", both: "the heap, and CPU time at 100 Hz" }.freeze
    # What it may cost, relative to nothing.
    TARGETS = { hz100: "<= 1.005", hz1000: "<= 1.030" }.freeze
    private_constant :FREQUENCIES, :DEPTH, :BLOCK, :VARIANTS, :TARGETS

    def initialize(quick:)
      super()
      @name = "cpu"
      @title = "Sampling CPU time: requests to a small shop, #{DEPTH} calls deep"
      @header = ["on", "CPU ns (min–max)", "relative to nothing (95 %)", "to the heap (95 %)", "target"]
      @rounds = quick ? 20 : 150
    end

    def jobs
      [Job.new("cpu requests", { kind: "cpu_pairs", subject: "nothing", load: "requests", depth: DEPTH, block: BLOCK,
                                 rounds: @rounds, frequencies: FREQUENCIES })]
    end

    def rows(job, results, _)
      rounds = results[job.name].flat_map { |figures| figures[:rounds] }
      VARIANTS.map do |variant, name|
        ratios = %i[nothing heap].map { |base| Pairs.text(Pairs.ratio(rounds, variant, base)) unless base == variant }
        ratios[1] = nil unless variant == :both
        [name, Bench.spread(rounds.map { |round| round[variant] }, 0), *ratios, TARGETS[variant]]
      end
    end
  end
end
