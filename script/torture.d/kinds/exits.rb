# frozen_string_literal: true

module Torture
  module Kinds
    # Processes that end in various ways while collectors run.
    class Exits < Kind
      WAYS = {
        "exit" => [-> { exit(7) }, ->(status) { status.exitstatus == 7 }],
        "exit!" => [-> { exit!(8) }, ->(status) { status.exitstatus == 8 }],
        "abort" => [-> { abort }, ->(status) { status.exitstatus == 1 }],
        "an exception" => [-> { raise SignalException, "TERM" }, ->(status) { status.termsig == 15 }],
        "SIGKILL" => [-> { Process.kill(:KILL, Process.pid) && sleep }, ->(status) { status.termsig == 9 }],
        "SIGTERM" => [-> { Process.kill(:TERM, Process.pid) && sleep }, ->(status) { status.termsig == 15 }],
        "exit from a thread" => [-> { Thread.new { exit(9) }.join }, ->(status) { status.exitstatus == 9 }],
        "exit in mid-flush" => [-> { Exits.exit_in_mid_flush }, ->(status) { status.exitstatus == 6 }]
      }.freeze

      def self.exit_in_mid_flush
        Thread.new { sleep(0.002) && exit(6) }
        loop { MemprofilerPprof.collectors.sample.flush }
      end

      private

      def step
        way = WAYS.keys.sample(random: random)
        ending, dies = WAYS.fetch(way)
        preparations = %i[busy flushing stopping].select { random.rand < 0.4 }
        Child.run("an end by #{way}", dies: dies) do
          trap("TERM", "DEFAULT")
          preparations.each { |name| __send__(name) }
          herd.grow(100)
          ending.call
        end
        nap(0.2)
      end

      def busy
        2.times { Thread.new { loop { herd.dup.add } } }
      end

      def flushing
        at_exit { MemprofilerPprof.collectors.each(&:flush) && herd.grow(50) }
      end

      def stopping
        at_exit { MemprofilerPprof.collectors.each(&:stop) }
      end
    end
  end
end
