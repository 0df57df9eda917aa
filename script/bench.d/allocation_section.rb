# frozen_string_literal: true

require_relative "section"

module Bench
  # CPU time and instructions per allocation.
  class AllocationSection < Section
    RATES = [0.01, 0.1, 1.0].freeze
    DEPTHS = [1, 10, 50, 200].freeze
    BT_METHODS = %w[profile_frames backtrace_locations].freeze
    BARE = { "nothing" => "nothing on", "tracepoints" => "empty tracepoints NEWOBJ+FREEOBJ",
             "raw_pair" => "empty raw hooks NEWOBJ+FREEOBJ", "raw_newobj" => "empty raw hook NEWOBJ" }.freeze
    # The target: how many instructions more than with nothing on a row may cost, on Ruby 3.1, by rate, depth and mode.
    # At 1 % the better mode, mark_bits, has its own target.
    TARGETS = {
      [0.01, 1, "mark_bits"] => 480, [0.01, 50, "mark_bits"] => 500,
      [0.01, 1, "freeobj"] => 540, [0.01, 50, "freeobj"] => 540,
      **[[0.1, 50, 700], [1.0, 1, 1000], [1.0, 50, 1500]].flat_map do |rate, depth, most|
        Runner::LIVENESS.map { |liveness| [[rate, depth, liveness], most] }
      end.to_h
    }.freeze

    def initialize(quick:)
      super()
      @name = "allocation"
      @title = "Cost of an allocation: `Foo.new(i)` in a loop under D calls"
      @header = ["on", "rate", "D", "liveness", "bt_method", "CPU ns (min–max)", "ratio",
                 "instructions", "over nothing", "target"]
      @quick = quick
    end

    def jobs
      depths = @quick ? [1, 50] : DEPTHS
      bare = BARE.keys.product(depths).map { |subject, depth| job(BARE[subject], subject: subject, depth: depth) }
      bare + (RATES.product(depths, ["cfp"]) + [0.1].product([50], BT_METHODS)).flat_map do |rate, depth, bt_method|
        Runner::LIVENESS.map { |liveness| gem_job(rate, depth, liveness, bt_method) }
      end
    end

    # The ratios of `jobs` need these.
    def needed_for(jobs)
      depths = jobs.map { |job| job.spec[:depth] }
      self.jobs.select { |job| job.spec[:subject] == "nothing" && depths.include?(job.spec[:depth]) }
    end

    def counted(jobs)
      jobs
    end

    def rows(job, results, instructions)
      spec = job.spec
      nothing = "nothing on D=#{spec[:depth]}"
      [[BARE.fetch(spec[:subject], "this gem"), spec[:rate], spec[:depth], spec[:liveness], spec[:bt_method],
        *times(results[job.name], results[nothing]), *counts(instructions[job.name], instructions[nothing]),
        instructions.any? ? target(spec) : nil]]
    end

    private

    def gem_job(rate, depth, liveness, bt_method)
      job("this gem rate=#{rate} liveness=#{liveness} bt_method=#{bt_method}",
          subject: "gem", rate: rate, depth: depth, liveness: liveness, bt_method: bt_method)
    end

    def job(label, spec)
      many = @quick ? 500_000 : 1_100_000
      Job.new("#{label} D=#{spec[:depth]}", { kind: "allocation", few: 100_000, many: many, **spec })
    end

    # Each round's ratio compares figures taken close to each other.
    def times(figures, nothing)
      nsecs = figures.map { |figure| figure[:nsecs] }
      ratios = nsecs.zip(nothing.map { |figure| figure[:nsecs] }).map { |mine, bare| mine / bare }
      [Bench.spread(nsecs, 0), format("%.2f", Bench.median(ratios))]
    end

    def counts(mine, bare)
      mine ? [Bench.number(mine), format("%+d", (mine - bare).round)] : [nil, nil]
    end

    def target(spec)
      return unless RUBY_VERSION.start_with?("3.1.") && spec[:bt_method] == "cfp"

      TARGETS[spec.values_at(:rate, :depth, :liveness)]&.then { |most| "<= +#{most}" }
    end
  end
end
