# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing/sample"

module MemprofilerPprof
  module Testing
    # What one call of a block allocated, and what of it is alive afterwards. The block's value is not: nobody has it.
    # @api private
    class Measurement
      # Bounds high enough for nothing to be thinned out; and what the reports rest on.
      EXACT = { sample_rate: 1.0, max_heap_samples: 16_000_000, max_stack_bytes: 1 << 30,
                object_class: true, sample_type_names: :ruby }.freeze
      # Garbage collections in which to come to rest: some objects are released by the finalizers of others.
      COLLECTIONS = 3
      private_constant :EXACT, :COLLECTIONS

      class << self
        # @param warm_up [Integer] how often to call the block before
        # @param cleanup [#call, nil] what to do before looking at what is alive
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

        # @return [Collector] one that follows everything
        def collector(**options)
          Collector.new(**Testing.collector_options, **EXACT, **options)
        end

        # Calls something, and then the block, whose allocations do not count. The collector has to be started right
        # before: one that cannot start must not be flushed either. Objects are followed further on, until the next
        # flush, which the caller must do in any case.
        #
        # Until a flush, a collector keeps the code alive by which its samples were allocated, so that classes which the
        # code itself has made would seem to stay. That is why this one flushes.
        #
        # @return [ProfileData] of what was allocated
        def observe(collector, code, collect: false)
          MemprofilerPprof.yield_deep(&code)
          MemprofilerPprof.without_profiling do
            yield if block_given?
            collector.flush(gc: collect)
          end
        ensure
          collector.stop
        end

        # Collects garbage until nothing more dies.
        # @return [void]
        def settle(*collectors)
          living = -> { collectors.sum(&:live_heap_samples_count) }
          COLLECTIONS.times do
            before = living.call
            break if before.zero?

            GC.start
            break if living.call == before
          end
        end

        # @raise [Error] if a collector lost sight of something
        def check(collector)
          stats = collector.stats
          reason = stats[:disarmed] || stats[:failure]
          reason ||= "garbage collections went unnoticed" if stats[:missed_collections].positive?
          reason ||= "more than #{collector.max_heap_samples} objects at once" if stats[:thinned_samples].positive?
          raise Error, "the objects cannot be counted: #{reason}" if reason
        end

        private

        # A regexp match stays reachable as $~ of the method around the block, which is nobody's leak.
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
