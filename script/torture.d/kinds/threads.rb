# frozen_string_literal: true

module Torture
  module Kinds
    # Threads that come, allocate from shallow and deep stacks, and go.
    class Threads < Kind
      private

      def step
        workers = Array.new(random.rand(1..6)) do
          herd = scene.population.herd(Random.new(random.rand(1 << 32)), limit: 50)
          depths = Array.new(10) { random.rand < 0.2 ? random.rand(2000) : random.rand(20) }
          Thread.new { depths.each { |depth| dive(depth) { herd.add } } }
        end
        workers.each(&:join)
        Thread.new { nil }.join
      end

      def dive(depth, &block)
        return block.call if depth.zero?

        depth.even? ? [nil].each { dive(depth - 1, &block) } : dive(depth - 1, &block)
      end
    end
  end
end
