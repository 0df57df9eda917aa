# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"

module TestRun
  # Which examples exist, and in which processes they run: batches of files that take about the same time. The seed
  # determines the batches, so that it shows when a file depends on what ran before it.
  class Plan
    ROOT = File.expand_path("../..", __dir__)
    # The duration of each file when it was last recorded, in seconds, alone on an idle machine.
    RECORD = File.join(__dir__, "seconds.json")
    # For an example in a file without a record.
    UNKNOWN = 0.05
    # For a batch. Longer batches spend more of their time on examples rather than on starting rspec; shorter ones
    # reduce the wait for the last one, and have smaller heaps, with faster full garbage collections.
    SECONDS = 8
    Batch = Struct.new(:lane, :files, :examples, :seconds, keyword_init: true)
    class Failed < StandardError; end

    # Records the duration of files, each in the lane that runs all of its examples.
    # @param jobs [Array<SpecJob>] that have run
    def self.record(jobs)
      jobs = jobs.select { |job| job.lane.name == "specs" || Lane::ELSEWHERE.include?(job.lane.name.to_sym) }
      recorded = JSON.parse(File.read(RECORD)).select { |file, _| File.exist?(File.join(ROOT, file)) }
      times = jobs.map(&:times).reduce(recorded, :merge).transform_values { |seconds| seconds.round(1) }
      File.write(RECORD, "#{JSON.pretty_generate(times.sort.to_h)}\n")
    end

    # @param files [Array<String>] spec files, and lines of them in rspec's notation; all files if empty
    # @param seed [Integer]
    # @param slow [Boolean] whether slow examples run, too
    # @raise [Failed] if the files cannot be loaded
    def initialize(files, seed:, slow:)
      @files = files
      @slow = slow
      @random = Random.new(seed)
      @recorded = JSON.parse(File.read(RECORD))
      # By file, a list for each example.
      @tags = examples.group_by(&:first).transform_values { |all| all.map(&:last) }
    end

    # @param lane [Lane]
    # @return [Array<Batch>]
    def batches(lane)
      files = @tags.filter_map do |file, all|
        here = all.select { |tags| lane.runs?(tags, slow: @slow) }
        next if here.empty?

        seconds = @recorded.fetch(file, UNKNOWN * all.size) * here.size / all.size
        Batch.new(lane: lane, files: named(file), examples: here.size, seconds: seconds)
      end
      alone, others = files.partition { |batch| own_process?(batch) }
      alone + together(others)
    end

    private

    def examples
      command = [RbConfig.ruby, "-S", "rspec", "--dry-run", "--order", "defined",
                 "--require", "#{__dir__}/plan_formatter", "--format", "PlanFormatter", *@files]
      output, errors, status = Open3.capture3(*command, chdir: ROOT)
      raise Failed, "#{command.join(" ")}\n#{output}\n#{errors}" unless status.success?

      output.lines.grep(/\A\[/).map do |line|
        file, tags = JSON.parse(line)
        [file, tags.map(&:to_sym)]
      end
    end

    # The arguments, if they named part of that file.
    def named(file)
      path = File.expand_path(file, ROOT)
      asked = @files.grep(/[:\[]/).select { |name| File.expand_path(name[/\A[^:\[]+/], ROOT) == path }
      asked.empty? ? [file] : asked
    end

    # Files whose examples fill the heap, or that load what changes others.
    def own_process?(batch)
      batch.files.any? { |file| @tags.fetch(file, []).any? { |tags| tags.include?(:own_process) } }
    end

    # The next longest file goes to the batch that is the shortest so far.
    def together(files)
      batches = []
      sorted = files.shuffle(random: @random).sort_by { |file| -file.seconds.round }
      batches = sorted.shift([(files.sum(&:seconds) / SECONDS).ceil, 1].max)
      sorted.each do |file|
        shortest = batches.each_index.min_by { |index| batches[index].seconds }
        batches[shortest] = merge(batches[shortest], file)
      end
      batches
    end

    def merge(batch, file)
      Batch.new(lane: batch.lane, files: batch.files + file.files, examples: batch.examples + file.examples,
                seconds: batch.seconds + file.seconds)
    end
  end
end
