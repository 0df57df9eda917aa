#!/usr/bin/env ruby
# frozen_string_literal: true

# Measures the profiler with the 2022 gem's benchmark, see bench.d/scenario.rb.

require "optparse"
require_relative "bench.d/report"
require_relative "bench.d/scenario"

# A row: its name, the collector's options (nil: no profiling) and whether it is flushed.
Row = Struct.new(:name, :collector, :flush)

ROWS = [
  Row.new("no profiling (1)"),
  Row.new("no profiling (2)"),
  *[1, 10, 100].flat_map do |percent|
    [Row.new("#{percent} %, no flush", { sample_rate: percent / 100r }, false),
     Row.new("#{percent} %, with flush", { sample_rate: percent / 100r }, true)]
  end,
  *%i[cfp profile_frames backtrace_locations].map do |bt_method|
    Row.new("10 %, no flush, #{bt_method}", { sample_rate: 0.1, bt_method: bt_method }, false)
  end
].freeze
# Above what the scenario keeps alive: at 100 % everything is sampled.
MOST_SAMPLES = 1_000_000
HEADER = ["profiling", "user s", "system s", "total s (min–max)", "real s", "ratio to first", "profile bytes"].freeze

def parse_options
  options = { rounds: 5, compile: true }
  OptionParser.new do |parser|
    parser.banner = "Usage: script/benchmark.rb [OPTION]..."
    parser.on("--rounds N", Integer, "how often each is measured (default: 5)")
    parser.on("--json PATH", "where all figures go (default: tmp/bench/benchmark-RUBY-TIME.json)")
    parser.on("--[no-]compile", "whether to compile the extension if it is out of date (default: yes)")
  end.parse!(into: options)
  options
end

def run_row(row, scenario)
  collector = row.collector && MemprofilerPprof::Collector.new(max_heap_samples: MOST_SAMPLES, **row.collector)
  profile = nil
  GC.start
  before = clocks
  collector&.start
  live = scenario.run
  profile = collector.flush if row.flush
  collector&.stop
  user, system, real = clocks.zip(before).map { |after, earlier| after - earlier }
  { user: user, system: system, total: user + system, real: real, live: live, bytes: profile&.pprof_data&.bytesize }
end

def clocks
  [Process.times.utime, Process.times.stime, Bench.clock]
end

# In a child process, so that each measurement starts with the same heap.
def measure(row, scenario)
  reader, writer = IO.pipe
  pid = fork do
    writer.write(JSON.generate(run_row(row, scenario)))
    writer.close
    exit!(true)
  end
  writer.close
  figures = reader.read
  Process.wait(pid)
  JSON.parse(figures, symbolize_names: true)
end

def cells(row, results)
  figures = results[row.name]
  user, system, real = %i[user system real].map { |key| format("%.2f", median_of(figures, key)) }
  # Each round's ratio compares figures taken close to each other.
  ratios = figures.zip(results[ROWS.first.name]).map { |mine, bare| mine[:total] / bare[:total] }
  [row.name, user, system, Bench.spread(figures.map { |figure| figure[:total] }, 2), real, Bench.spread(ratios, 2),
   row.flush ? Bench.number(median_of(figures, :bytes)) : nil]
end

def median_of(figures, key)
  Bench.median(figures.map { |figure| figure[key] })
end

options = parse_options
Bench.compile if options[:compile]
$LOAD_PATH.unshift(File.join(Bench::ROOT, "lib"))
require "ruby_memprofiler_pprof"

begin
  machine = Bench.machine
  puts machine.values_at(:ruby, :cpu).join("\n")
  warn "Making #{Scenario::CLASSES} classes, #{Scenario::METHODS} methods and #{Scenario::STEPS} steps"
  scenario = Scenario.new
  progress = Bench::Progress.new(ROWS.size * options[:rounds])
  results = Hash.new { |hash, name| hash[name] = [] }
  options[:rounds].times do
    ROWS.each do |row|
      progress.step(row.name)
      results[row.name] << measure(row, scenario)
    end
  end
  progress.finish
  puts Bench.table("#{Bench.number(Scenario::STEPS)} random steps, CPU time", HEADER,
                   ROWS.map { |row| cells(row, results) })
  path = Bench.write_json(options[:json], "benchmark", { machine: machine, options: options, figures: results })
  puts "", "All figures: #{path}"
rescue Interrupt
  exit 130
end
