# frozen_string_literal: true

module Torture
  module Kinds
    # Fibers and external enumerators, finished or abandoned midway.
    class Fibers < Kind
      private

      def step
        Child.in_fibers do
          resume(Array.new(random.rand(1..10)) { Fiber.new { random.rand(20).times { Fiber.yield(herd.add) } } })
          abandon(random.rand(1..10))
          lazily(random.rand(5))
          transfer if random.rand < 0.2
        end
        nap
      end

      def abandon(times)
        abandoned = enumerator
        times.times { abandoned.next }
      end

      def lazily(count)
        (1..).lazy.map { herd.add }.select { |object| object }.first(count)
      end

      def resume(fibers)
        random.rand(50).times { fibers.sample(random: random).then { |fiber| fiber.resume if fiber.alive? } }
      end

      def enumerator
        Enumerator.new { |yielder| loop { yielder << herd.add } }
      end

      def transfer
        main = Fiber.current
        Fiber.new { main.transfer(herd.add) }.transfer
      rescue FiberError
        # A resumed fiber cannot be transferred to.
        nil
      end
    end
  end
end
