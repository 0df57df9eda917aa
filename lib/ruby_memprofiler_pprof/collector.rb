# frozen_string_literal: true

module MemprofilerPprof
  # Samples allocations and follows the sampled objects until they die. Defined by the native extension; what is here
  # needs no access to its insides.
  #
  # @!method initialize(sample_rate: 0.01, max_heap_samples: 50_000, track_allocations: true, bt_method: :cfp,
  #     liveness: :auto, max_frames: 1000, max_stack_bytes: 67_108_864, object_class: true, object_age: false,
  #     sample_type_names: :ruby, pretty_backtraces: true, seed: nil)
  #   @param sample_rate [Numeric] the fraction of allocations to sample, 0.0..1.0
  #   @param max_heap_samples [Integer] the most live samples to keep, from 1. Past it every other sample is dropped and
  #     the rate halved, which keeps the estimates unbiased; the rate climbs back when few live samples are left
  #   @param track_allocations [Boolean] whether profiles tell allocations since the last flush, too
  #   @param bt_method [Symbol] `:cfp` walks the VM's frames, `:profile_frames` asks `rb_profile_frames`,
  #     `:backtrace_locations` is slow and there for comparison
  #   @param liveness [Symbol] how deaths are noticed: `:freeobj` by the hook that the GC calls for each object that it
  #     frees, `:mark_bits` by asking at the end of each mark phase, `:auto` by whatever is best on this Ruby. A change
  #     holds from the next start after a flush of the stopped collector. What is used, {#stats} tell
  #   @param max_frames [Integer] deeper stacks lose their outermost frames, `(truncated)` stands in their place
  #   @param max_stack_bytes [Integer] about how much memory stored stacks may take, from 1 MiB. Past it, allocations of
  #     dead objects are told under `(stack not kept)`, and live samples are thinned if need be
  #   @param object_class [Boolean] whether samples carry the label `class`
  #   @param object_age [Boolean] whether samples carry the numeric label `gc_age`: garbage collections survived
  #   @param sample_type_names [Symbol] `:ruby`, or `:go` for servers that know only Go's names
  #   @param pretty_backtraces [Boolean] whether methods are called `Foo#bar` rather than `bar`
  #   @param seed [Integer, nil] makes the choice of samples reproducible
  #   @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
  # @!method start
  #   Begins to sample. Harmless if it runs already.
  #   @return [self]
  #   @raise [RactorError] off the main Ractor, or where this Ruby's own bugs forbid it
  # @!method stop
  #   Ends sampling. Deaths are followed until the next flush, which tells what is alive then.
  #   @return [self]
  # @!method flush(yield_gvl: true, proactively_yield_gvl: true, gc: false, min_age: 0)
  #   Takes a profile of the objects alive now and of the allocations since the last flush.
  #   @param yield_gvl [Boolean] whether to encode and compress while other threads run
  #   @param proactively_yield_gvl [Boolean] whether to let other threads run between slices of the rest
  #   @param gc [Boolean] whether to collect garbage first
  #   @param min_age [Integer] how many garbage collections an object must have survived to count as retained
  #   @return [ProfileData]
  #   @raise [NotStartedError] if the collector was never started
  # @!method running?
  #   @return [Boolean] whether allocations are sampled
  # @!method live_heap_samples_count
  #   @return [Integer] sampled objects not known to be dead
  # @!method last_mark_nsecs
  #   @return [Integer] how long the GC's last mark of the collector took, in nanoseconds
  # @!method mark_table_size
  #   @return [Integer] how many objects it marked
  # @!method stats
  #   @return [Hash{Symbol => Object}] figures about the collector itself
  # @!method after_fork
  #   @api private
  # @!method before_ractor
  #   @api private
  class Collector
    OPTIONS.each do |option|
      define_method(option) { get_option(option) }
      define_method(:"#{option}=") { |value| set_option(option, value) }
    end

    # Samples while the block runs. Stops in any case, so that nothing goes on if the block raises.
    #
    # @return [ProfileData] of what the block allocated, and of what is alive of it
    def profile
      raise ArgumentError, "profile needs a block" unless block_given?

      start
      begin
        yield
      ensure
        stop
      end
      flush
    end
  end
end
