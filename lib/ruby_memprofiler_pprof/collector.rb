# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/reader"

module MemprofilerPprof
  # Samples allocations and follows the sampled objects until they die. Defined by the native extension, apart from what
  # is below.
  #
  # @!method initialize(sample_rate: 0.01, sampling: :auto, window_frame: nil, window_duty: 0.03,
  #     max_sampling_time: 0.002, max_heap_samples: 50_000, track_allocations: true, bt_method: :cfp, liveness: :auto,
  #     max_frames: 1000, max_stack_bytes: 67_108_864, object_class: true, object_age: false, labels: true,
  #     thread_names: false, track_peak: false, sample_type_names: :ruby, pretty_backtraces: true, seed: nil, tags: {})
  #   @param sample_rate [Numeric] the fraction of allocations to sample, 0.0..1.0
  #   @param sampling [Symbol] `:always` samples all the time, `:windows` only in short windows at random times, at a
  #     rate so much higher that `sample_rate` remains the fraction of all allocations, as long as `max_sampling_time`
  #     allows that; `:auto` in windows where they pay. Where windows are impossible it is `:always`; {#stats} says
  #     which one is used, and why
  #   @param window_frame [Numeric, nil] the seconds in each of which one window opens, 0.001..1.0; nil for 0.03, or 0.1
  #     where windows open at safe points while YJIT or ZJIT is on, since compiled code is left there. {#stats} says
  #     what is used
  #   @param window_duty [Numeric] the fraction of the time that windows are open, 0.01..0.5
  #   @param max_sampling_time [Numeric] the fraction of the program's CPU time that samples in windows may take,
  #     0.0001..1.0; 1.0 is no bound. Where they would take more, fewer are taken than `sample_rate` asks for, which
  #     keeps estimates unbiased. {#stats} has the rate in force
  #   @param max_heap_samples [Integer] the most live samples to keep, from 1. Beyond it, every other sample is dropped
  #     and the rate halved, which keeps estimates unbiased; the rate rises again when few live samples are left
  #   @param track_allocations [Boolean] whether profiles also report the allocations since the last flush
  #   @param bt_method [Symbol] `:cfp` walks the VM's frames, `:profile_frames` asks `rb_profile_frames`,
  #     `:backtrace_locations` is slow and there for comparison
  #   @param liveness [Symbol] how deaths are detected: `:freeobj` by the hook that the GC calls for each object that it
  #     frees, `:mark_bits` by asking at the end of each mark phase, `:auto` by whatever is best on this Ruby. A change
  #     takes effect after the collector has been stopped, flushed and started again. {#stats} says which one is used
  #   @param max_frames [Integer] the outermost frames of deeper stacks become `(truncated)`
  #   @param max_stack_bytes [Integer] approximate memory limit for stored stacks, from 1 MiB. Beyond it, allocations of
  #     dead objects are reported under `(stack not kept)`, if necessary without labels; then live samples are thinned
  #   @param object_class [Boolean] whether samples carry the label `class`
  #   @param object_age [Boolean] whether samples carry the numeric label `gc_age`: garbage collections survived
  #   @param labels [Boolean] whether samples carry the labels of {MemprofilerPprof.with_labels}, and some also those of
  #     {MemprofilerPprof::OpenTelemetry}
  #   @param thread_names [Boolean] whether samples carry a label `thread`: the name that the thread which allocated has
  #     at the next flush. The main thread is called `main` unless it has another; a nameless thread gives no label, and
  #     a label of the program's with this key takes precedence. Until that flush the thread is kept, even if it has
  #     ended, with its value and variables
  #   @param track_peak [Boolean] whether to keep what was alive when the process had the most memory, for
  #     {#peak_profile}: garbage collections look at it whenever the resident bytes are 5 % more than ever before. Needs
  #     mark bits
  #   @param sample_type_names [Symbol] `:ruby`, or `:go` for servers that know only Go's names
  #   @param pretty_backtraces [Boolean] whether methods are called `Foo#bar` rather than `bar`
  #   @param seed [Integer, nil] makes the choice of samples reproducible
  #   @param tags [Hash{String, Symbol => String, Symbol}, nil] what profiles say of their process, as comments
  #     `tag.NAME=VALUE`. Names have letters, digits, `_` and `.`, values up to 256 bytes without `,`, `=`, `{` and `}`
  #   @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
  # @!method start(only: nil)
  #   Starts sampling. Does nothing if it runs already, whatever the argument.
  #   @param only [Symbol, nil] whose allocations to sample: `:thread` those of the calling thread, in all its fibers,
  #     `:fiber` those of the calling fiber, nil for all
  #   @return [self]
  #   @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
  #   @raise [RactorError] off the main Ractor, or where this Ruby's own bugs forbid it
  # @!method stop
  #   Stops sampling. Deaths are followed until the next flush, which reports what is alive then.
  #   @return [self]
  # @!method flush(yield_gvl: true, proactively_yield_gvl: true, gc: false, min_age: 0, max_hold: 0.0005,
  #     max_duration: 10, sample_type_names: nil, default_sample_type: :retained_size)
  #   Takes a profile of the objects alive now and of the allocations since the last flush, whose interval ends.
  #   @param yield_gvl [Boolean] whether to let other threads run while encoding and compressing
  #   @param proactively_yield_gvl [Boolean] whether to let other threads run between slices of the rest
  #   @param gc [Boolean] whether to collect garbage first
  #   @param min_age [Integer] how many garbage collections an object must have survived to count as retained
  #   @param max_hold [Numeric] for how many seconds at a time to hold the GVL while another thread wants it
  #   @param max_duration [Numeric] after how many seconds to stop yielding to other threads; as the time runs out,
  #     the GVL is held for longer at a time
  #   @param sample_type_names [Symbol, nil] `:ruby` or `:go`; nil is the collector's option
  #   @param default_sample_type [Symbol] the value that viewers show first: `:allocations`, `:allocations_size`,
  #     `:retained_objects` or `:retained_size`, whatever they are called in the profile
  #   @return [ProfileData]
  #   @raise [NotStartedError] if the collector was never started
  #   @raise [InternalError] after a bug of the gem's own
  # @!method peak_profile(**options)
  #   The profile of what was alive when the process had the most memory, as far as garbage collections saw it; without
  #   allocations. Ends no interval. The comment `tracked_peak_rss_bytes` has the resident bytes. A forked child
  #   begins again, and a collector that was stopped forgets it at its last flush.
  #   @param options [Hash{Symbol => Object}] as for {#flush}; `gc` and `min_age` make no difference
  #   @return [ProfileData, nil] with the time of the peak; nil unless `track_peak` is on and a garbage collection has
  #     seen one
  #   @raise [NotStartedError, InternalError, ArgumentError, TypeError] as {#flush}
  # @!method only
  #   @return [Symbol, nil] what was passed to {#start}
  # @!method self.check_flush_options(...)
  #   Raises what {#flush} would raise for these keywords.
  #   @api private
  # @!method running?
  #   @return [Boolean] whether allocations are sampled
  # @!method live_heap_samples_count
  #   @return [Integer] sampled objects not known to be dead
  # @!method last_mark_nsecs
  #   @return [Integer] how long the GC's last mark of the collector took, in nanoseconds
  # @!method mark_table_size
  #   @return [Integer] how many objects it marked
  # @!method stats
  #   @return [Hash{Symbol => Object}] figures about the collector itself, see docs/ruby-api.md; `pinned_functions` and
  #     `pinned_classes` count what Ruby cannot free until its name is read
  # @!method start!(only: nil)
  #   The same as {#start}.
  #   @return [self]
  # @!method stop!
  #   The same as {#stop}.
  #   @return [self]
  # @!method after_fork
  #   Starts a new interval in a forked child, with the live set that it has inherited.
  #   @api private
  # @!method retainers_data(site, class_name, limit, in_process, timeout)
  #   @return [Array(String, String)] what {#retainers} consists of: JSON, and gzipped pprof
  #   @api private
  # @!method memory_data(full)
  #   @return [String] what {#memory} consists of: JSON
  #   @api private
  # @!method before_ractor
  #   Says that there will be other Ractors. Stops where this Ruby would crash otherwise.
  #   @api private
  #
  # @!attribute [rw] sample_rate
  #   @return [Float] see {#initialize}; a new rate applies to samples taken from then on
  # @!attribute [rw] sampling
  #   @return [Symbol] see {#initialize}; {#stats} says which one is used
  # @!attribute [rw] window_frame
  #   @return [Float, nil] see {#initialize}
  # @!attribute [rw] window_duty
  #   @return [Float] see {#initialize}
  # @!attribute [rw] max_sampling_time
  #   @return [Float] see {#initialize}
  # @!attribute [rw] max_heap_samples
  #   @return [Integer] see {#initialize}
  # @!attribute [rw] track_allocations
  #   @return [Boolean] see {#initialize}
  # @!attribute [rw] bt_method
  #   @return [Symbol] see {#initialize}; {#stats} says which one is used
  # @!attribute [rw] liveness
  #   @return [Symbol] see {#initialize}; {#stats} says which one is used
  # @!attribute [rw] max_frames
  #   @return [Integer] see {#initialize}
  # @!attribute [rw] max_stack_bytes
  #   @return [Integer] see {#initialize}
  # @!attribute [rw] object_class
  #   @return [Boolean] see {#initialize}
  # @!attribute [rw] object_age
  #   @return [Boolean] see {#initialize}
  # @!attribute [rw] labels
  #   @return [Boolean] see {#initialize}
  # @!attribute [rw] thread_names
  #   @return [Boolean] see {#initialize}
  # @!attribute [rw] track_peak
  #   @return [Boolean] see {#initialize}; false forgets the peak
  # @!attribute [rw] sample_type_names
  #   @return [Symbol] see {#initialize}
  # @!attribute [rw] pretty_backtraces
  #   @return [Boolean] see {#initialize}; names that were read before do not change
  # @!attribute [rw] seed
  #   @return [Integer, nil] see {#initialize}
  # @!attribute [rw] tags
  #   @return [Hash{String => String}] see {#initialize}; empty if there are none
  class Collector
    # @!parse
    #   # The names of the options, in the order in which the constructor's documentation has them.
    #   OPTIONS = %i[sample_rate sampling ...].freeze

    OPTIONS.each do |option|
      # Unlike define_method, this makes methods that any Ractor may call.
      class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        def #{option} = get_option(:#{option})           # def sample_rate = get_option(:sample_rate)
        def #{option}=(value)                            # def sample_rate=(value)
          set_option(:#{option}, value)                  #   set_option(:sample_rate, value)
        end                                              # end
      RUBY
    end

    # Takes the profile that {#flush} would take, but ends no interval: the next flush reports these allocations, too.
    #
    # @param options [Hash{Symbol => Object}] as for {#flush}
    # @return [ProfileData] whose `duration_nanos` is 0
    # @raise [NotStartedError, InternalError, ArgumentError, TypeError] as {#flush}
    def peek(**options)
      flush_for(nil, **options)
    end

    # Opens a reader, which has intervals of its own. With a block, closes it when the block ends, also if it raises,
    # and in a child that another thread forks meanwhile.
    #
    # @yieldparam reader [Reader]
    # @return [Reader, Object] the reader; with a block, the block's value
    # @raise [Error] if seven are open already
    def open_reader
      return Reader.new(self, add_reader) unless block_given?

      reader = nil
      ending = BlockEndings.enter { reader&.close }
      begin
        BlockEndings.begin { reader = Reader.new(self, add_reader) }
        yield reader
      ensure
        reader&.close
      end
    ensure
      BlockEndings.leave(ending)
    end

    # Finds out where the resident memory of this process is, with what the samples know.
    #
    # @param full [Boolean] whether to walk over the whole heap, which takes some milliseconds for each 10,000 objects
    # @return [Memory]
    # @raise [ArgumentError] if the argument is something else
    def memory(full: true)
      Argument.one_of(:full, full, [true, false])
      # Loaded only here, since few programs need it; it is none of the program's objects.
      MemprofilerPprof.without_profiling { Memory.ask(self, full) }
    end

    # Finds out who holds the sampled objects that are alive: which constants, variables, threads and so on. The heap
    # is read in a copy of this process, which the program does not notice but for a pause of a few milliseconds while
    # it is made; other threads run meanwhile.
    #
    # @param site [String, nil] only what this line has allocated, "FILE:LINE", or this file; a path can begin at any of
    #   its directories
    # @param class_name [String, nil] only objects of this very class
    # @param limit [Integer] the most sites, those with the most bytes
    # @param in_process [Boolean] whether to do it in this process, with the GVL held, where there can be no copy
    # @param timeout [Numeric] seconds after which to give up
    # @return [Retainers]
    # @raise [RetainersError] if it cannot be found out, here or at the moment; the message says what would help
    # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
    def retainers(site: nil, class_name: nil, limit: 10, in_process: false, timeout: 60)
      # What it takes is none of the program's objects.
      MemprofilerPprof.without_profiling do
        { site: site, class_name: class_name }.each { |name, value| Argument.text(name, value) unless value.nil? }
        Argument.integer(:limit, limit, from: 1)
        Argument.one_of(:in_process, in_process, [true, false])
        Argument.seconds(:timeout, timeout)
        # Loaded only here, since few programs need it.
        Retainers.new(*retainers_data(site, class_name, limit, in_process, timeout))
      end
    end

    # Samples while the block runs. Sampling stops even if the block raises, whose samples are then forgotten, and in a
    # child that another thread forks meanwhile.
    #
    # @param only [Symbol, nil] as for {#start}
    # @return [ProfileData] of what the block allocated, and of what is alive of it
    def profile(only: nil)
      raise ArgumentError, "profile needs a block" unless block_given?

      started = false
      ending = BlockEndings.enter { discard if started }
      begin
        BlockEndings.begin do
          start(only: only)
          started = true
        end
        yield
      ensure
        stop if started
        # Also if the block raises: until it is flushed, a stopped collector is kept alive.
        profile = flush if started
      end
      profile
    ensure
      BlockEndings.leave(ending)
    end

    # Stops, and forgets what was sampled. Until it is flushed, a stopped collector keeps a hook, to follow the deaths
    # of its objects.
    # @return [void]
    # @api private
    def discard
      stop
      flush
    rescue Error
      # It could not be started, so there is no hook.
      nil
    end
  end
end
