# frozen_string_literal: true

module MemprofilerPprof
  module Testing
    # What calls of a block cost, in seconds, and how many of them the leak check can afford.
    #
    # What counts is the CPU time of the calling thread, which does not depend much on how busy the machine is. For the
    # number of calls not to depend on it at all, there are only few limits, far from each other, and the least of
    # several costs counts.
    #
    # Calls that wait for I/O, other threads or processes cost the elapsed time instead. They are recognised by
    # voluntary context switches, which Linux counts, and by taking much longer than their CPU time. On a busy machine
    # the latter alone is true of calls that only compute, too, since the scheduler preempts them.
    # @api private
    class Cost
      # How many calls, and batches of them, are made of a block that costs less than a limit.
      Step = Struct.new(:limit, :first_calls, :longer_batches)

      # Each limit is 8 times the one before. So a leak takes 0.7 to 11 seconds of CPU time to prove if a call costs
      # between 0.03 and 128 ms.
      STEPS = [
        Step.new(0.000_25, 200, 8),
        Step.new(0.002, 200, 5),
        Step.new(0.016, 60, 4),
        Step.new(0.128, 20, 3),
        Step.new(Float::INFINITY, 20, 2)
      ].freeze
      # What a call took on average: CPU seconds, elapsed seconds, and whether it may have waited.
      Measured = Struct.new(:cpu, :wall, :waited)
      # Calls that wait take at least this many times their CPU time: if all measured ones wait, and if only some do.
      ALL_WAIT = 8
      SOME_WAIT = 64
      # How many of the last batches decide how many are to follow: calls may become slower as something grows.
      JUDGED = 2
      private_constant :Step, :STEPS, :Measured, :ALL_WAIT, :SOME_WAIT, :JUDGED

      def initialize
        @measured = []
      end

      # @return [Integer, nil] how often the calling thread has given up its processor to wait; nil if the system does
      #   not count that
      def self.voluntary_switches
        File.read("/proc/thread-self/status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1]&.to_i
      rescue SystemCallError
        nil
      end

      # Measures a block that makes this many calls.
      # @param calls [Integer]
      def measure(calls)
        switches = self.class.voluntary_switches
        cpu, wall = clocks
        yield
        later_cpu, later_wall = clocks
        waited = switches.nil? || self.class.voluntary_switches - switches >= calls
        @measured << Measured.new((later_cpu - cpu) / calls, (later_wall - wall) / calls, waited)
      end

      # @return [Integer] how many calls the first batches have together, by all measurements so far
      def first_calls
        step(@measured).first_calls
      end

      # @return [Integer] how many batches follow the first ones, each with twice as many calls as the one before
      def longer_batches
        step(@measured.last(JUDGED)).longer_batches
      end

      private

      def step(measured)
        times = @measured.all? { |calls| waited?(calls, ALL_WAIT) } ? ALL_WAIT : SOME_WAIT
        least = measured.map { |calls| waited?(calls, times) ? calls.wall : calls.cpu }.min
        STEPS.find { |step| least < step.limit }
      end

      def waited?(calls, times)
        calls.waited && calls.wall > times * calls.cpu
      end

      def clocks
        [Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID), Process.clock_gettime(Process::CLOCK_MONOTONIC)]
      end
    end
  end
end
