# frozen_string_literal: true

require_relative "heap_sections"

module Bench
  # Who holds the heap: `Collector#retainers`, and `ObjectSpace.dump_all`, which writes what such a search could read.
  class RetainersSection < HeapSection
    LIVE = [1_000_000, 5_000_000].freeze
    # For each number of objects.
    TARGETS = { 1_000_000 => "pause <= 10 ms, answer <= 1 s",
                5_000_000 => "answer <= 2.5 s, <= 80 B per object" }.freeze
    private_constant :LIVE, :TARGETS

    def initialize(quick:)
      super()
      @live = quick ? LIVE.first(1) : LIVE
      @name = "retainers"
      @title = "Who holds the heap: records with an Array and a String each, in a Hash; samples of 1 %"
      @header = ["objects", "resident MB", "pause ms (min–max)", "answer ms", "in process ms", "copy's B per object",
                 "dump_all ms", "its MB", "target"]
    end

    def jobs
      @live.map { |live| job("live=#{live}", liveness: "mark_bits", live: live, rate: 0.01, depth: 1) }
    end

    def row(job, results, _)
      figures = results[job.name]
      live = job.spec[:live]
      times = %i[pause elapsed held].map { |key| milliseconds(figures, key) }
      [Bench.number(live), megabytes(figures, :resident), *times, Bench.spread(figures.map do |figure|
                                                                                 figure[:bytes].fdiv(figure[:objects])
                                                                               end, 0),
       milliseconds(figures, :dump), megabytes(figures, :dumped), TARGETS.fetch(live)]
    end

    private

    def megabytes(figures, key)
      Bench.spread(figures.map { |figure| figure[key] / 1e6 }, 0)
    end
  end
end
