# frozen_string_literal: true

require "timeout"

module Torture
  module Kinds
    # Thread#raise, Thread#kill and Timeout at any moment of a flush, a start, an allocation.
    class Interruptions < Kind
      # The exception that hits the victims.
      class Hit < StandardError; end

      # Before Ruby 3.3 a thread that is killed while it runs a finalizer continues, and can never be killed again.
      IMMORTAL = RUBY_VERSION < "3.3"

      private

      def step
        herd = wild_herd
        victims = Array.new(random.rand(1..3)) { |number| victim(number.even?, herd) }
        random.rand(1..10).times do
          nap(0.01)
          hit(victims.sample(random: random))
        end
        timeouts(herd)
        finish_off(victims)
        raise Wrong, "an interrupted collector is off" unless scene.interrupted.collector.running?
      end

      def victim(flushes, herd)
        collector = scene.interrupted.collector
        Thread.new do
          Thread.current.report_on_exception = false
          (flushes ? collector.flush(max_hold: 1e-6) : herd.add) until Thread.current[:spared]
        rescue Hit
          retry
        end
      end

      def hit(victim)
        random.rand < 0.2 ? victim.kill : victim.raise(Hit)
      end

      def timeouts(herd)
        collector = scene.interrupted.collector
        5.times do
          Timeout.timeout(0.0005 + (random.rand * 0.01)) { loop { collector.flush(max_hold: 1e-6) && herd.add } }
        rescue Timeout::Error
          herd.add
        end
      end

      def finish_off(victims)
        victims.each { |thread| thread[:spared] = IMMORTAL }.each(&:kill)
        victims.each { |thread| join(thread) }
      end

      def join(thread)
        thread.join(PATIENCE) || raise(Hang, "a killed thread does not end: #{thread.backtrace}")
      rescue Hit
        nil
      end
    end
  end
end
