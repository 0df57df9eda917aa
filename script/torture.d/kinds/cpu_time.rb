# frozen_string_literal: true

module Torture
  module Kinds
    # CPU time that is sampled as often as the system allows. Its profiles must add up to what the process has used.
    class CpuTime < Kind
      # One profile is taken at a time.
      TURN = Mutex.new
      private_constant :TURN

      def self.missing
        "there are no timers on CPU time" unless RUBY_PLATFORM.include?("linux")
      end

      private

      def step
        TURN.synchronize do
          began = process_cpu
          start
          begin
            random.rand(1..5).times { check(began) { trouble } }
          ensure
            MemprofilerPprof::CPU.stop
          end
        end
        nap
      end

      def start
        MemprofilerPprof::CPU.start(frequency: random.rand(100..10_000), thread_names: random.rand < 0.5,
                                    labels: random.rand < 0.8, only: (:thread if random.rand < 0.1))
      end

      def check(began)
        yield
        used = MemprofilerPprof::CPU.flush(max_hold: random.rand * 0.001).profile.total(:cpu).value
        raise "#{used} ns of CPU time are in a profile, and #{process_cpu - began} were used" if
          used > process_cpu - began
      end

      def trouble
        case random.rand(6)
        when 0 then GC.start(full_mark: random.rand < 0.2)
        when 1 then Array.new(random.rand(1..5)) { Thread.new { herd_of_its_own } }.each(&:join)
        when 2 then in_a_fiber
        when 3 then MemprofilerPprof.with_labels(step: random.rand(100)) { herd.grow(50) }
        when 4 then random.bytes(100_000).sum
        else nap
        end
      end

      def in_a_fiber
        Child.in_fibers { Fiber.new { herd.grow(50) }.resume }
      end

      def herd_of_its_own
        Array.new(100) { |number| number.to_s * 10 }.sort.map(&:hash)
      end

      def process_cpu
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
      end
    end
  end
end
