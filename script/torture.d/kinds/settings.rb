# frozen_string_literal: true

module Torture
  module Kinds
    # Rates and bounds that change while collectors run.
    class Settings < Kind
      private

      def step
        change(scene.estimators.sample(random: random).collector)
        herd.grow(100)
        nap
      end

      def change(collector)
        case random.rand(6)
        when 0, 1 then collector.sample_rate = Estimator::RATES.sample(random: random)
        when 2 then collector.max_heap_samples = random.rand(200..20_000)
        when 3 then collector.max_frames = random.rand(1..2000)
        when 4 then collector.max_stack_bytes = (1 << 20) + random.rand(1 << 23)
        else collector.flush(max_hold: random.rand * 0.001)
        end
      end
    end
  end
end
