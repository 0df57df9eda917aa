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
      # If there is no memory for another page of the heap, 3.3 raises while it holds a lock that is there for Ractors.
      # What gives that back then does nothing without Ractors, and waits forever for that to change
      # (`rb_ec_vm_lock_rec_release` in vm_sync.c). One child in a thousand gets there; with a heap of which only the
      # slots of 640 bytes are all in use, each does, without the gem, too.
      STUCK = Signal.list.fetch(Child::STUCK)

      # The collectors' own memory must not be what ends the process.
      def limited
        used = File.read("/proc/self/statm").to_i * 4096
        room = random.rand(8..64) << 20
        Child.run("limited memory", dies: method(:expected?)) do
          _, most = Process.getrlimit(:AS)
          Process.setrlimit(:AS, used + room, most)
          exhaust
          Process.setrlimit(:AS, most, most)
          scene.witnesses.each(&:flush)
        end
      end

      def expected?(status)
        DEATHS.include?(status.exitstatus) || status.termsig == STUCK
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
