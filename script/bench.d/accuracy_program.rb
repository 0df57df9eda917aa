# frozen_string_literal: true

# Runs a workload whose methods know what CPU time they use, under one sampler, and prints what both say, as JSON:
#
#   accuracy_program.rb SAMPLER WORKLOAD FREQUENCY SECONDS

require "digest"
require "json"
require "zlib"

# Methods w_*, in each of which one kind of work is done, and what it really used.
module Work
  NUMBERS = Array.new(20_000) { |number| (number * 7919) % 20_011 }.freeze
  DOCUMENT = Array.new(300) { |id| { "id" => id, "name" => "n#{id}", "v" => [1.5, nil, true] } }.freeze
  BYTES = Random.new(1).bytes(300_000).freeze
  LINE = "#{"x" * 2500}y".freeze
  # A turn of {spin} takes some 25 ns.
  UNIT = 4000

  class << self
    def spin(turns)
      turn = 0
      turn += 1 while turn < turns
    end

    def w_tenth = spin(UNIT)
    def w_fifth = spin(2 * UNIT)
    def w_rest = spin(7 * UNIT)
    def w_block = (UNIT / 2).times { |number| number + 1 }
    def w_sort = NUMBERS.sort
    def w_digest = Digest::SHA256.hexdigest(BYTES)
    def w_regexp = LINE =~ /x*z/
    def w_json = JSON.generate(DOCUMENT)
    def w_garbage = 5000.times { ["a" * 50] }
    def w_deflate = Zlib.deflate(BYTES, 6)
    def w_fiber = Fiber.new { spin(2 * UNIT) }.resume
    def w_sleep(random) = sleep(0.0005 + (random.rand * 0.003))
  end
end

# The workloads: each thread does its pieces in random order, until the time is over.
module Workloads
  RUBY = %i[w_tenth w_fifth w_rest].freeze
  ALL = {
    "Ruby code" => [RUBY],
    "blocks and fibers" => [%i[w_block w_fiber w_rest]],
    "C functions" => [%i[w_sort w_digest w_regexp w_json]],
    "garbage" => [%i[w_garbage w_rest w_json]],
    "bursts between sleeps" => [[*RUBY, :w_sleep]],
    "four threads, two without the GVL" => [RUBY, RUBY, %i[w_deflate w_tenth], %i[w_deflate w_rest]]
  }.freeze

  class << self
    # @return [Hash{Symbol => Integer}] the CPU nanoseconds of each method
    def run(name, seconds)
      deadline = now(Process::CLOCK_MONOTONIC) + (seconds * 1e9)
      threads = ALL.fetch(name).each_with_index.map do |pieces, seed|
        Thread.new { piecewise(pieces, Random.new(seed), deadline) }
      end
      threads.map(&:value).reduce { |sum, truth| sum.merge(truth) { |_, left, right| left + right } }
    end

    def warm_up(name)
      ALL.fetch(name).flatten.uniq.each { |piece| 3.times { call(piece, Random.new(1)) } }
    end

    private

    def piecewise(pieces, random, deadline)
      truth = Hash.new(0)
      while now(Process::CLOCK_MONOTONIC) < deadline
        pieces.shuffle(random: random).each do |piece|
          before = now(Process::CLOCK_THREAD_CPUTIME_ID)
          call(piece, random)
          truth[piece] += now(Process::CLOCK_THREAD_CPUTIME_ID) - before
        end
      end
      truth
    end

    def call(piece, random)
      piece == :w_sleep ? Work.w_sleep(random) : Work.public_send(piece)
    end

    def now(clock) = Process.clock_gettime(clock, :nanosecond)
  end
end

# Ways to sample. Each yields, and returns CPU nanoseconds and names of frames of each sample.
module Samplers
  class << self
    def gem(frequency, &)
      require "ruby_memprofiler_pprof"
      # The first start checks the walker.
      MemprofilerPprof::CPU.profile { nil }
      profile = MemprofilerPprof::CPU.profile(frequency: frequency, &).profile
      profile.samples.map { |sample| [sample.values.last, sample.stack.map(&:name), sample.values.first] }
    end

    def handler(frequency, &) = other(:start_handler, frequency, &)
    def wall(frequency, &) = other(:start_wall, frequency, &)

    private

    def other(start, frequency)
      require "other_samplers"
      OtherSamplers.public_send(start, 1_000_000_000 / frequency)
      yield
      OtherSamplers.finish
    end
  end
end

sampler, workload, frequency, seconds = ARGV
Workloads.warm_up(workload)
truth = process = nil
samples = Samplers.public_send(sampler, Integer(frequency)) do
  process = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  truth = Workloads.run(workload, Float(seconds))
  process = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - process
end
estimates = samples.each_with_object(Hash.new(0)) do |(weight, names, _), sums|
  sums[names.filter_map { |name| name[/w_\w+/] }.last || "(other)"] += weight
end
puts JSON.generate(truth: truth, estimates: estimates, process: process,
                   samples: samples.sum { |_, _, count| count || 1 })
