# frozen_string_literal: true

module Torture
  module Kinds
    # Allocations without profiling, in blocks that are left in every way; none of them may be reported, and all others
    # must be.
    class Muting < Kind
      private

      def prepare
        @population = scene.population
        @muted = @population.space.const_set(:Muted, Class.new)
        @kept = []
      end

      def step
        muted = @muted
        catch(:out) { MemprofilerPprof.without_profiling { muted.new && throw(:out) } }
        herd.add
        begin
          MemprofilerPprof.without_profiling { muted.new && raise(IOError) }
        rescue IOError
          herd.add
        end
        nested(muted)
        thread = Thread.new { MemprofilerPprof.without_profiling { muted.new && sleep } }
        nap
        thread.kill.join
        Thread.new { @kept << herd.add }.join
      end

      def nested(muted)
        MemprofilerPprof.without_profiling do
          MemprofilerPprof.without_profiling { muted.new }
          @kept << muted.new
          # Allocations of other threads are reported.
          Thread.new { herd.add }.join
        end
        @kept.shift(50) if @kept.size > 100
      end
    end
  end
end
