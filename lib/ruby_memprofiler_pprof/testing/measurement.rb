# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing/sample"

module MemprofilerPprof
  module Testing
    # What one call of a block allocated, and what of it is alive afterwards. The block's value is discarded, so that it
    # is not alive.
    # @api private
    class Measurement
      # Every object is sampled, with bounds so high that no sample is dropped; the rest is what reports need.
      EXACT = { sample_rate: 1.0, sampling: :always, track_allocations: true, max_heap_samples: 16_000_000,
                max_stack_bytes: 1 << 30, object_class: true, sample_type_names: :ruby }.freeze
      # How many garbage collections there are at most, since finalizers may release further objects.
      COLLECTIONS = 3
      private_constant :EXACT, :COLLECTIONS

      class << self
        # @param warm_up [Integer] how often to call the block before
        # @param cleanup [#call, nil] is called before the survivors are counted
        # @return [Measurement]
        # @raise [Error] if not everything could be counted
        def take(warm_up: 0, cleanup: nil, &block)
          warm_up.times { MemprofilerPprof.yield_deep(&block) }
          collector = self.collector
          restore_match = last_match_restorer(block)
          collector.start
          begin
            allocated = observe(collector, block, collect: true) do
              restore_match.call
              cleanup&.call
            end
            settle(collector)
          ensure
            retained = collector.flush
          end
          check(collector)
          new(allocated, retained)
        end

        # @return [Collector] one that samples every object
        def collector(**options)
          Collector.new(**Testing.collector_options, **EXACT, **options)
        end

        # Calls the code, and then the block, whose allocations do not count. The caller has to start the collector
        # right before: one that cannot start must not be flushed either. Deaths are followed until the next flush,
        # which the caller must do even if this raises.
        #
        # Until a flush, a collector keeps the code alive that allocated its samples, so that classes which that code
        # has defined would seem to be retained. That is why this flushes.
        #
        # @return [ProfileData] of what was allocated
        # @raise [Error] if not everything could be counted
        def observe(collector, code, collect: false)
          refuse("without_profiling is in force") if MemprofilerPprof.muted?
          MemprofilerPprof.yield_deep(&code)
          MemprofilerPprof.without_profiling do
            check(collector)
            refuse("their collector was stopped meanwhile") unless collector.running?
            yield if block_given?
            collector.flush(gc: collect)
          end
        ensure
          collector.stop
        end

        # Collects garbage until nothing more dies.
        #
        # The GC treats the stack as references down to where its fiber last switched to another, even if the frames
        # there have returned since (cont.c, `fiber_setcontext` and `cont_mark`). That was deep in the block, if it
        # uses fibers; here there are no remains of it.
        # @return [void]
        def settle(*collectors)
          MemprofilerPprof.without_profiling { Fiber.new { nil }.resume }
          living = -> { collectors.sum(&:live_heap_samples_count) }
          COLLECTIONS.times do
            before = living.call
            break if before.zero?

            GC.start
            break if living.call == before
          end
        end

        # @raise [Error] if a collector did not see every object
        def check(collector)
          stats = collector.stats
          reason = stats[:disarmed] || stats[:failure]
          reason ||= "garbage collections went unnoticed" if stats[:missed_collections].positive?
          reason ||= "more than #{collector.max_heap_samples} objects at once" if stats[:thinned_samples].positive?
          refuse(reason) if reason
        end

        private

        def refuse(reason)
          raise Error, "the objects cannot be counted: #{reason}"
        end

        # Restores the last regexp match: it stays reachable as $~ of the method around the block, which is no leak.
        def last_match_restorer(block)
          match, setter = block.binding.eval("[$~, ->(match) { $~ = match }]", __FILE__, __LINE__)
          -> { setter.call(match) }
        rescue ArgumentError
          # A Symbol or Method as a block has no binding.
          -> {}
        end
      end

      # @param allocated [ProfileData] taken right after the call
      # @param retained [ProfileData] taken when all garbage was collected
      def initialize(allocated, retained)
        @profiles = { allocate: allocated, retain: retained }
        @samples = {}
      end

      # @param verb [Symbol] :allocate or :retain
      # @return [ProfileData]
      def profile(verb)
        @profiles.fetch(verb)
      end

      # @param verb [Symbol] :allocate or :retain
      # @return [Array<Sample>]
      def samples(verb)
        @samples[verb] ||= Sample.all(profile(verb))
      end
    end
  end
end
