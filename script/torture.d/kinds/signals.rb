# frozen_string_literal: true

module Torture
  module Kinds
    # Signals whose handlers allocate, on the main thread, whatever it is doing.
    class Signals < Kind
      NAMES = %w[USR1 USR2 CONT WINCH].freeze

      private

      def prepare
        # A handler must not wait for a lock, so each has a herd of its own.
        NAMES.each do |name|
          herd = scene.late.herd(Random.new(random.rand(1 << 32)), limit: 1000)
          trap(name) { herd.grow(3) }
        end
      end

      def step
        random.rand(10).times { Process.kill(NAMES.sample(random: random), Process.pid) }
        nap(0.003)
      end

      # Signals that are still pending must find a handler.
      def finish
        NAMES.each { |name| trap(name) { nil } }
      end
    end
  end
end
