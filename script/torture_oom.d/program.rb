# frozen_string_literal: true

# What runs out of memory: leaks at a rate, at the lines marked "leak", until it is killed.
#
# Usage: ruby program.rb PROGRAM MB_PER_SECOND PATTERN

require "ruby_memprofiler_pprof"

program, rate, pattern = ARGV
rate = Float(rate) * 1e6
# Made before the profiler starts: a sample of something so big would outweigh all others.
KEPT = Array.new(4) { [] }
SIZE = 200

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

def leak(kept)
  kept << ("x" * SIZE) # leak
end

# So that there are many stacks.
def deeper(levels, kept)
  levels.zero? ? leak(kept) : deeper(levels - 1, kept)
end

def leak_at(rate, kept = KEPT.first)
  begun = now
  done = 0
  loop do
    deeper(done % 40, kept) && (done += 1) while done * (SIZE + 40) < (now - begun) * rate
  end
end

MemprofilerPprof.start(pattern: pattern, interval: 3600)
MemprofilerPprof.with_labels(endpoint: "leaky#index") do
  case program
  when "ruby" then leak_at(rate)
  when "threads" then KEPT.map { |kept| Thread.new { leak_at(rate / 4, kept) } }.each(&:join)
  when "fork" then Process.wait(fork { leak_at(rate) })
  when "c_call"
    require "hog"
    Hog.fill(KEPT.first, SIZE, rate) # leak
  end
end
