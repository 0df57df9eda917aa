# frozen_string_literal: true

module Torture
  module Kinds
    # Who holds the objects, and where all of the memory is, asked at any moment.
    class Questions < Kind
      private

      def step
        random.rand < 0.5 ? who_holds : where_is_memory
        herd.grow(20)
        nap(0.1)
      end

      def who_holds
        in_process = random.rand < 0.3
        answer = witness.collector.retainers(limit: random.rand(1..20), in_process: in_process)
        return if answer.objects.positive? && answer.in_process? == in_process

        raise Wrong, "#{witness.name} finds #{answer.inspect} in_process: #{in_process}"
      rescue MemprofilerPprof::RetainersError => e
        # A copy can be lost to locks that other threads had when it was made. In the process itself nothing is lost.
        raise if in_process && !e.message.include?("already")
      end

      def where_is_memory
        memory = MemprofilerPprof::Memory.current(full: random.rand < 0.5)
        raise Wrong, "the ledger knows of no memory: #{memory}" unless memory.rss.to_i.positive?
      end

      def witness
        scene.witnesses.sample(random: random)
      end
    end
  end
end
