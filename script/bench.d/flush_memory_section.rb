# frozen_string_literal: true

require_relative "heap_sections"

module Bench
  # The memory that a flush takes for a while, and what it leaves behind, where nearly every sample has a deep stack of
  # its own.
  class FlushMemorySection < HeapSection
    LIVE = 52_000
    # Of the innermost frames of each stack, most are its own: so many frames in all.
    FRAMES = 300_000
    private_constant :LIVE, :FRAMES

    def initialize(**)
      super()
      @name = "flush_memory"
      @title = "Memory of a flush: #{Bench.number(LIVE)} live samples, hardly two with the same stack; " \
               "before the later flush, half of them are new"
      @header = ["liveness", "flush", "frames", "ms (min–max)", "at most, MB more", "left behind, MB", "profile bytes",
                 "target"]
    end

    def jobs
      Runner::LIVENESS.map { |liveness| job("frames=#{FRAMES}", liveness: liveness, live: LIVE, frames: FRAMES) }
    end

    def rows(job, results, _)
      %i[first later].map { |which| row(job, which, results[job.name].map { |figures| figures[which] }) }
    end

    private

    def row(job, which, figures)
      numbers = %i[frames bytes].map { |key| Bench.number(Bench.median(figures.map { |figure| figure[key] })) }
      [job.spec[:liveness], which, numbers.first, milliseconds(figures, :nsecs),
       *%i[more left].map { |key| megabytes(figures, key) }, numbers.last, "<= 12 MB more"]
    end

    def megabytes(figures, key)
      Bench.spread(figures.map { |figure| figure[key] / 1e6 }, 1)
    end
  end
end
