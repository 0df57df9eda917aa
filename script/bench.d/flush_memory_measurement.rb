# frozen_string_literal: true

# What {Bench::FlushMemorySection} needs of worker.rb.
module Measurements
  # The methods of {Maze}: enough that two of its paths seldom begin with the same three.
  DOORS = 64
  private_constant :DOORS

  # Methods that call one another in any order.
  module Maze
    DOORS.times do |number|
      define_singleton_method(:"door_#{number}") do |path, at|
        at == path.size ? Object.new : __send__(path[at], path, at + 1)
      end
    end

    NAMES = Array.new(DOORS) { |number| :"door_#{number}" }

    # An object allocated at the end of a random path of so many calls.
    def self.object(random, length)
      path = Array.new(length) { NAMES[random.rand(DOORS)] }
      __send__(path[0], path, 1)
    end
  end

  class << self
    # Two flushes.
    def flush_memory(spec)
      random = Random.new(1)
      # About three calls are shared with another path.
      length = (spec[:frames] / spec[:live]) + 3
      kept = under(spec[:depth]) { Array.new(spec[:live]) { Maze.object(random, length) } }
      first = flush_memory_figures
      under(spec[:depth]) { (0...spec[:live]).step(2) { |index| kept[index] = Maze.object(random, length) } }
      { kept: kept.size, first: first, later: flush_memory_figures }
    end

    private

    def under(depth, &)
      depth > 1 ? under(depth - 1, &) : yield
    end

    def flush_memory_figures
      frames, before = frames_and_memory
      # Begins a new peak.
      File.write("/proc/self/clear_refs", "5")
      profile = SUBJECT.collector.flush
      peak = status("VmHWM")
      figures = { nsecs: profile.flush_duration_nsecs, bytes: profile.pprof_data.bytesize, frames: frames }
      profile = nil # rubocop:disable Lint/UselessAssignment -- it is garbage from now on
      { **figures, more: peak - before, left: frames_and_memory.last - before }
    end

    def frames_and_memory
      3.times { GC.start }
      [SUBJECT.collector.stats[:stack_nodes], status("VmRSS")]
    end

    # @return [Integer] bytes
    def status(line)
      File.read("/proc/self/status")[/^#{line}:\s*(\d+)/, 1].to_i * 1024
    end
  end
end
