# frozen_string_literal: true

require_relative "report"
require_relative "section"

module Bench
  # What the profiler takes of a process that does nothing: memory, and CPU time of the thread that watches memory.
  class ProcessSection < Section
    # Bytes from what is used to `dump_above`.
    ROOMS = [2_000_000, 5_000_000, 50_000_000].freeze
    # What is there beside the profiler that is only started.
    EXTRAS = { "started" => {}, "everything" => { cpu: true, track_peak: true } }.freeze
    private_constant :ROOMS, :EXTRAS

    def initialize(quick:)
      super()
      @name = "process"
      @seconds = quick ? 2 : 10
      @title = "A process that does nothing: resident memory of the profiler, and of the thread that watches memory " \
               "the CPU time in #{@seconds} s"
      @header = ["what", "MB more when required (min–max)", "MB more in all", "% of a core", "looks per second"]
    end

    def jobs
      memory = EXTRAS.map { |what, options| job("memory #{what}", kind: "process_memory", options: options) }
      memory + ROOMS.map { |room| job("watch #{room / 1_000_000} MB", kind: "watch", room: room, seconds: @seconds) }
    end

    def rows(job, results, _)
      figures = results[job.name]
      spread = ->(key, digits) { Bench.spread(figures.map { |figure| figure[key] }, digits) if figures.first.key?(key) }
      [[job.name.delete_prefix("process "), spread[:required, 1], spread[:all, 1], spread[:percent, 2],
        spread[:looks, 0]]]
    end

    private

    def job(what, **spec)
      Job.new("process #{what}", { subject: "nothing", **spec })
    end
  end
end
