# frozen_string_literal: true

module Torture
  module Kinds
    # Collectors that are started, stopped, flushed and dropped in any order, even while running.
    class Collectors < Kind
      private

      STEPS = %i[begin_one begin_one stop_one flush_one flush_one start_one abandon profile_block].freeze
      private_constant :STEPS

      def step
        @collectors ||= []
        __send__(STEPS.sample(random: random))
        abandon if @collectors.size > 4
        herd.grow(20)
        nap
      end

      def begin_one
        @collectors << make.start
      end

      def stop_one
        @collectors.sample(random: random)&.stop
      end

      def start_one
        @collectors.sample(random: random)&.start
      end

      def flush_one
        options = flush_options
        @collectors.sample(random: random)&.flush(**options)
      end

      def profile_block
        make.profile { herd.grow(50) }
      end

      def make
        MemprofilerPprof::Collector.new(**scene.options(random), **bounds, **flags, **windows,
                                        sample_rate: [0.0, 0.01, 0.3, 1.0].sample(random: random),
                                        bt_method: METHODS.sample(random: random))
      end

      METHODS = %i[cfp profile_frames backtrace_locations].freeze
      private_constant :METHODS

      def bounds
        { max_heap_samples: random.rand(1..10_000), max_frames: random.rand(1..300) }
      end

      # From Ruby 3.3 on, and with the lower rates, one collector at a time samples in windows.
      def windows
        { sampling: %i[always windows].sample(random: random), window_frame: random.rand(0.001..0.02),
          window_duty: random.rand(0.01..0.5), max_sampling_time: [0.0001, 0.003, 1.0].sample(random: random) }
      end

      def flags
        names = %i[object_class object_age track_allocations thread_names pretty_backtraces]
        names.to_h { |name| [name, random.rand < 0.7] }
      end

      def flush_options
        { gc: random.rand < 0.1, yield_gvl: random.rand < 0.7, proactively_yield_gvl: random.rand < 0.7,
          min_age: random.rand(3), max_hold: [1e-6, 0.0001, 0.0005].sample(random: random) }
      end

      # The VM's hooks keep a running collector alive; so it is stopped, but not always flushed.
      def abandon
        collector = @collectors.delete_at(random.rand(@collectors.size)) if @collectors.any?
        collector&.stop
        collector&.flush if collector && random.rand < 0.5
      end

      def finish
        @collectors&.each { |collector| collector.stop && collector.flush }
        (MemprofilerPprof.collectors.reject(&:running?) - scene.witnesses.map(&:collector)).each(&:flush)
      end
    end
  end
end
