# frozen_string_literal: true

# The process that is tortured. Started by script/torture, which reports how it ended.

$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "optparse"
require "ruby_memprofiler_pprof"
require_relative "../../spec/support/pprof/plain_decoder"
%w[population kind sums witness audit scene child].each { |name| require_relative name }
Dir[File.join(__dir__, "kinds", "*.rb")].each { |file| require file }

# What torments a process that runs collectors.
module Torture
  # Runs slice after slice; each ends with an audit.
  class Worker
    SLICE = 3.0

    def initialize(options)
      @options = options
      @liveness = options[:liveness] ? { liveness: options[:liveness].to_sym } : {}
      @kinds = choose(options[:only])
    end

    def run
      Backtraces.on_quit
      @witnesses = (@liveness.any? ? [@liveness[:liveness]] : %i[freeobj mark_bits]).map do |liveness|
        Witness.new("the #{liveness} collector", liveness: liveness)
      end
      deadline = Torture.now + @options[:seconds]
      number = @options[:slice]
      while Torture.now < deadline
        slice(number)
        number += 1
      end
      finish(number)
    end

    private

    def choose(only)
      chosen = only ? Kind.all.select { |kind| only.include?(kind.title) } : Kind.all
      missing, here = chosen.partition(&:missing)
      missing.each { |kind| say "without #{kind.title}: #{kind.missing}" }
      here
    end

    def slice(number)
      random = Random.new((@options[:seed] * 1_000_003) + number)
      kinds = @options[:only] ? @kinds : @kinds.sample(random.rand(3..8), random: random).sort_by(&:title)
      progress(number, kinds)
      scene = Scene.new(number, @witnesses, kinds, random, @liveness)
      torment(scene, kinds, random)
      began = Torture.now
      scene.audit
      report(scene, Torture.now - began)
      scene.end
    end

    def torment(scene, kinds, random)
      scene.begin(SLICE)
      threads = kinds.map { |kind| start(kind.new(Random.new(random.rand(1 << 62)), scene)) }
      flush_meanwhile(scene, random)
      threads.each { |thread| join(thread) }
    end

    def start(kind)
      Thread.new do
        Thread.current.name = kind.class.title
        Thread.current.report_on_exception = false
        kind.run
      end
    end

    # The main thread flushes, which is also the one that signals interrupt.
    def flush_meanwhile(scene, random)
      until scene.over?
        sleep(random.rand(0.1..0.8))
        (scene.witnesses - [scene.interrupted]).sample(random: random).flush
      end
    end

    def join(thread)
      return if thread.join(PATIENCE)

      Backtraces.of_threads
      raise Hang, "#{thread.name} did not end"
    end

    def finish(slices)
      @witnesses.each(&:flush)
      bytes = @witnesses.map { |witness| witness.collector.stats[:bytes] }
      GC.start
      @witnesses.each(&:stop)
      left = @witnesses.map { |witness| witness.collector.stats[:live_samples] }.sum
      raise Wrong, "#{left} samples after the last flush of a stopped collector" if left.positive?

      say "#{slices - @options[:slice]} slices, all counts exact; collectors held #{bytes.map { |b| b >> 10 }} kB"
    end

    def progress(number, kinds)
      File.write(@options[:heartbeat], "slice #{number}: #{kinds.map(&:title).join(" ")}\n") if @options[:heartbeat]
    end

    def report(scene, seconds)
      stats = @witnesses.first.collector.stats
      say format("slice %<number>d: %<objects>d objects alive, %<allocated>d allocated, %<live>d samples, " \
                 "%<bytes>d kB, RSS %<rss>d MB, audited in %<seconds>.1f s",
                 seconds: seconds, number: scene.number, objects: scene.population.living.values.sum,
                 allocated: scene.population.allocated.values.sum, live: stats[:live_samples],
                 bytes: stats[:bytes] >> 10, rss: Torture.resident >> 20) + remarks(scene)
    end

    def remarks(scene)
      { "missed collections" => :newly_missed, "stack ends" => :newly_aside }.map do |name, count|
        counts = scene.witnesses.map(&count)
        counts.any?(&:positive?) ? ", #{name}: #{counts}" : ""
      end.join
    end

    def say(line)
      puts line
      $stdout.flush
    end
  end

  module_function

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def resident
    File.read("/proc/self/statm").split[1].to_i * 4096
  rescue SystemCallError
    0
  end
end

options = { seed: 0, seconds: 10.0, slice: 0 }
OptionParser.new do |parser|
  parser.on("--seed N", Integer)
  parser.on("--seconds N", Float)
  parser.on("--slice N", Integer)
  parser.on("--liveness NAME")
  parser.on("--only KINDS", Array)
  parser.on("--heartbeat PATH")
end.parse!(into: options)

begin
  Torture::Worker.new(options).run
rescue Torture::Wrong, Torture::Hang => e
  warn("#{e.class.name}: #{e.message}", e.backtrace.first(15).map { |line| "  #{line}" })
  # Threads that are still running must not delay this.
  exit!(e.is_a?(Torture::Hang) ? 3 : 1)
end
