# frozen_string_literal: true

module Torture
  module Kinds
    # Exceptions, throws and breaks through frames that allocate, even while they are being left.
    class Exceptions < Kind
      private

      def step
        20.times { rescued(random.rand(30)) }
        catch(:out) { [1, 2].each { through(random.rand(10)) { throw :out } } }
        [1].each { through(5) { break } }
        retried(random.rand(3))
        nap(0.002)
      end

      def rescued(depth)
        through(depth) { raise ArgumentError, "on purpose" }
      rescue ArgumentError => e
        herd.add
        e.backtrace
        raise TypeError, "with a cause" rescue herd.add # rubocop:disable Style/RescueModifier
      end

      def through(depth, &block)
        herd.add
        depth.zero? ? block.call : [depth - 1].each { |less| through(less, &block) }
      ensure
        herd.add
      end

      def retried(times)
        herd.add
        raise IOError if (times -= 1).positive?
      rescue IOError
        herd.add
        retry
      end
    end
  end
end
