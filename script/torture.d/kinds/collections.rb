# frozen_string_literal: true

module Torture
  module Kinds
    # Garbage collections of all sorts, compaction, and GC.stress for a moment.
    class Collections < Kind
      # Whether a compaction may read a stale reference above the top of the VM's stack, whose page can be gone
      # (Bug #19320). With auto_compact and GC.stress every allocation compacts, and sooner or later one crashes.
      UNSAFE_COMPACTION = RUBY_VERSION < "3.1.4" || RUBY_VERSION == "3.2.0"
      WAYS = {
        full: -> { GC.start },
        minor: -> { GC.start(full_mark: false, immediate_sweep: false) },
        lazy: -> { GC.start(full_mark: true, immediate_sweep: false) },
        compact: -> { GC.compact },
        auto_compact: -> { GC.auto_compact = !GC.auto_compact }
      }.reject { |way, _| way == :auto_compact && UNSAFE_COMPACTION }.freeze

      private

      def step
        herd.grow(100)
        way = [*WAYS.keys, :full, :stress, :paused, :shrunk].sample(random: random)
        WAYS.key?(way) ? WAYS[way].call : __send__(way)
        nap(0.05)
      rescue NotImplementedError
        # Not every platform compacts.
        herd.add
      end

      def shrunk
        herd.shrink(0.9)
      end

      # In a child: here each thread would wait for the others' collections.
      def stress
        Child.run("GC.stress") do
          GC.stress = true
          herd.grow(3)
          GC.stress = false
          scene.witnesses.each(&:flush)
        end
      end

      def paused
        GC.disable
        herd.grow(1000)
      ensure
        GC.enable
      end

      def finish
        GC.enable
        GC.auto_compact = false
      rescue NotImplementedError
        nil
      end
    end
  end
end
