# frozen_string_literal: true

require "weakref"

module Torture
  module Kinds
    # Objects with finalizers that allocate, and weak references to dying objects.
    class Finalizers < Kind
      private

      def prepare
        # A finalizer runs on any thread, in the middle of whatever that does.
        @late = scene.late.herd(Random.new(random.rand(1 << 32)), limit: 100)
        @map = ObjectSpace::WeakMap.new
        @references = []
      end

      def step
        random.rand(30).times { finalize(herd.add(:Plain), @late) }
        @map[herd.add(:Plain)] = herd.add(:Text)
        @references << WeakRef.new(herd.add(:Plain))
        @references.shift(50) if @references.size > 100
        herd.shrink(0.3)
        nap
      end

      def finalize(object, late)
        ObjectSpace.define_finalizer(object, proc { late.add })
        ObjectSpace.undefine_finalizer(object) if random.rand < 0.2
      end
    end
  end
end
