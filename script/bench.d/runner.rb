# frozen_string_literal: true

require "etc"
require "json"
require "open3"
require "rbconfig"
require_relative "report"

module Bench
  # A configuration to measure: its name for people and --only, and the input of worker.rb.
  Job = Struct.new(:name, :spec)

  # Runs jobs, each in its own process.
  class Runner
    WORKER = File.expand_path("worker.rb", __dir__)
    # The gem's ways to notice deaths.
    LIVENESS = %w[freeobj mark_bits].freeze
    # Numbers of allocations. The shorter run ends after the first garbage collections; the difference spans many.
    INSTRUCTION_RUNS = [100_000, 400_000].freeze
    # For the method that takes a hundred times as long: that is minutes under callgrind, and the third digit does not
    # matter.
    SHORT_INSTRUCTION_RUNS = [20_000, 80_000].freeze

    def initialize(hooks_directory)
      # Gems are not needed, and without them valgrind has a fifth of the work at startup.
      @ruby = [RbConfig.ruby, "--disable-gems", "-I", File.join(ROOT, "lib"), "-I", hooks_directory, WORKER]
    end

    # Takes the jobs in turn, so that temporary disturbances affect all of them.
    #
    # @return [Hash{String => Array<Hash>}] what the worker measured, by the job's name, once for each round
    def in_turn(jobs, rounds)
      progress = Progress.new(jobs.size * rounds)
      results = Hash.new { |hash, name| hash[name] = [] }
      rounds.times do
        jobs.each do |job|
          progress.step(job.name)
          results[job.name] << JSON.parse(run(*@ruby, JSON.generate(job.spec)).first, symbolize_names: true)
        end
      end
      progress.finish
      results
    end

    # The number of instructions does not depend on other load, so these run side by side.
    #
    # @return [Hash{String => Float}] instructions per allocation or other unit of work, by the job's name
    def instructions(jobs)
      progress = Progress.new(jobs.size)
      queue = Queue.new
      jobs.each { |job| queue << job }
      queue.close
      pairs = Array.new(Etc.nprocessors) { Thread.new { count_all(queue, progress) } }.flat_map(&:value)
      progress.finish
      pairs.to_h
    end

    private

    def count_all(queue, progress)
      pairs = []
      while (job = queue.pop)
        progress.step("instructions of #{job.name}")
        pairs << [job.name, instructions_of(job)]
      end
      pairs
    end

    def instructions_of(job)
      counts = job.spec[:runs]
      counts ||= job.spec[:bt_method] == "backtrace_locations" ? SHORT_INSTRUCTION_RUNS : INSTRUCTION_RUNS
      few, many = counts.map { |count| count(job.spec.merge(kind: "instructions", count: count)) }
      (many - few).fdiv(counts.last - counts.first)
    end

    def count(spec)
      command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *@ruby, JSON.generate(spec)]
      _, messages = run(*command)
      Integer(messages[/Collected : (\d+)/, 1] || raise("callgrind printed no figure:\n#{messages}"))
    end

    # Otherwise Bundler's RUBYOPT and the like would be measured, too.
    def run(*command)
      out, err, status = Open3.capture3({ "RUBYOPT" => nil, "RUBYLIB" => nil }, *command)
      raise "#{command.join(" ")} failed with #{status}:\n#{err}" unless status.success?

      [out, err]
    end
  end
end
