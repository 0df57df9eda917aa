# frozen_string_literal: true

module Torture
  module Kinds
    # NoMemoryError: for requests too big for any machine, and in children with limited memory.
    class MemoryErrors < Kind
      private

      def step
        10.times { too_big }
        limited if random.rand < 0.05
        nap
      end

      def too_big
        case random.rand(3)
        when 0 then "x" * (1 << 62)
        when 1 then Array.new(1 << 59)
        else String.new(capacity: 1 << 61)
        end
        raise Wrong, "got memory for what is too big"
      rescue NoMemoryError, ArgumentError
        herd.add
      end

      # If memory runs out while Ruby is about to raise an exception for that, it prints [FATAL] and exits: even without
      # the gem, that ends one process in a hundred here.
      DEATHS = [0, 1].freeze

      # The collectors' own memory must not be what ends the process.
      def limited
        used = File.read("/proc/self/statm").to_i * 4096
        room = random.rand(8..64) << 20
        Child.run("limited memory", dies: ->(status) { DEATHS.include?(status.exitstatus) }) do
          _, most = Process.getrlimit(:AS)
          Process.setrlimit(:AS, used + room, most)
          exhaust
          Process.setrlimit(:AS, most, most)
          scene.witnesses.each(&:flush)
        end
      end

      def exhaust
        hoard = []
        loop { hoard << ("x" * random.rand(1 << 20)) << herd.add }
      rescue NoMemoryError
        hoard.clear
      end
    end
  end
end
