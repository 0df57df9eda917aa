# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"
require "ruby_memprofiler_pprof/default_profiler"

# The profiler of this process: one collector, set up by the {Configuration}, which also says which source of settings
# wins. Its methods can be called from any thread of the main Ractor, but not in a signal handler (see the settings
# `dump_on` and `toggle_on` for that).
module MemprofilerPprof
  # How many live samples {profile} keeps by default. Each needs less memory than the smallest object,
  # as `script/bench` prints.
  PROFILE_SAMPLES = 10_000_000
  private_constant :PROFILE_SAMPLES

  @profiler = DefaultProfiler.new

  class << self
    # The object that the methods below delegate to.
    # @return [DefaultProfiler]
    # @raise [RactorError] outside of the main Ractor, as the methods below
    # @api private
    def profiler
      @profiler
    rescue Ractor::IsolationError
      raise RactorError, "the profiler of the process can only be used on the main Ractor"
    end

    # Changes settings. All are checked at once; if one is wrong, nothing changes. While the profiler runs, they take
    # effect at once, where profiles go included; a warning names those of CPU time, `enabled` and `liveness`, which do
    # not, and says when they will. Settings from the environment are not overridden.
    #
    # @example
    #   MemprofilerPprof.configure do |config|
    #     config.interval = 300
    #     config.files = true
    #   end
    # @yieldparam config [Configuration] has a writer for each setting; nil removes what was configured before
    # @return [Configuration]
    # @raise [ArgumentError] naming the setting, its value and what is allowed
    # @raise [NoMethodError] if there is no such setting
    def configure(&block)
      raise ArgumentError, "configure needs a block" unless block

      profiler.configure(&block)
    end

    # @return [Configuration] the settings in force, frozen
    # @raise [ArgumentError] if the environment has a wrong setting
    def config
      profiler.config
    end

    # @return [Collector] of this process. It is made at the first call, and does nothing before {start}
    def collector
      profiler.collector
    end

    # @return [BlockFlusher, nil] what delivers profiles between {start} and {stop}, if anything does; a {FileFlusher}
    #   if it writes files
    def flusher
      profiler.flusher
    end

    # Starts sampling, unless the setting `enabled` is false. Delivers profiles as well if a setting says where:
    # `files`, `pattern`, `on_flush` or `pyroscope_url`. If it runs already, only the settings take effect. If it
    # fails, nothing has changed.
    #
    # @example
    #   MemprofilerPprof.start(interval: 300, pattern: "/var/tmp/%{pid}-%{isotime}.pb.gz")
    # @param settings [Hash{Symbol => Object}] take precedence over all other sources until {stop}, which also restores
    #   the previous handlers of signals among them
    # @return [Collector]
    # @raise [ArgumentError] naming the setting, its value and what is allowed
    # @raise [RactorError] as {Collector#start}
    def start(**settings)
      profiler.start(**settings)
    end

    # Stops sampling, and writes the last file if files are written and there is a sample. Without files, {flush} takes
    # the last profile. Harmless if it does not run.
    # @return [void]
    def stop
      profiler.stop
      nil
    end

    # Takes a profile of the objects alive now and of the allocations since the last profile.
    #
    # @param out [String, #to_path, nil] a file to write it to, replacing an existing one. A missing directory is made
    #   before the profile is taken
    # @param options [Hash{Symbol => Object}] as for {Collector#flush}
    # @return [ProfileData]
    # @raise [NotStartedError] before the first {start}
    # @raise [SystemCallError] if the directory cannot be made, in which case no interval ends, or the file cannot be
    #   written
    def flush(out: nil, **options)
      AtomicFile.prepare(out)
      profile = collector.flush(**config.flush_options, **options)
      profile.write(out) if out
      profile
    end

    # Finds out who holds the sampled objects that are alive.
    #
    # @example
    #   puts MemprofilerPprof.retainers(site: "app/models/cart.rb:11")
    # @param out [String, #to_path, nil] a file to write the paths to, replacing an existing one. A missing directory is
    #   made before
    # @param options [Hash{Symbol => Object}] as for {Collector#retainers}
    # @return [Retainers]
    # @raise [RetainersError] as {Collector#retainers}
    # @raise [SystemCallError] as {flush}
    def retainers(out: nil, **options)
      AtomicFile.prepare(out)
      retainers = collector.retainers(**options)
      retainers.write(out) if out
      retainers
    end

    # @return [Boolean] whether allocations are sampled
    def running?
      profiler.running?
    end

    # Profiles the block with a separate collector, every object unless `sample_rate` says otherwise, whether or not the
    # profiler of the process runs. It ends in a child that another thread forks meanwhile. If more objects are alive at
    # once than `max_heap_samples`, or their stacks need more than `max_stack_bytes`, samples are dropped and the
    # figures are estimates: a warning and the profile's comments say so.
    #
    # @example
    #   MemprofilerPprof.profile(out: "boot.pb.gz") { require "rails" }
    # @param out [String, #to_path, nil] a file to write the profile to, replacing an existing one. A missing directory
    #   is made before the block is called
    # @param sample_rate [Numeric] 0.0..1.0
    # @param max_heap_samples [Integer] as for {Collector#initialize}
    # @param options [Hash{Symbol => Object}] further settings of a collector or of a flush; the others are as
    #   configured, except `sampling`, which is `:always`
    # @return [ProfileData] of what the block allocated, and of what is alive of it
    # @raise [ArgumentError] naming the setting, its value and what is allowed
    # @raise [SystemCallError] if the directory cannot be made, before the block is called, or the file cannot be
    #   written
    def profile(out: nil, sample_rate: 1.0, max_heap_samples: PROFILE_SAMPLES, **options)
      raise ArgumentError, "profile needs a block" unless block_given?

      settings = block_settings(sample_rate: sample_rate, max_heap_samples: max_heap_samples, sampling: :always,
                                **options)
      AtomicFile.prepare(out)
      collector = Collector.new(**settings.collector_options)
      ending = BlockEndings.enter { collector.discard }
      started = nil
      begin
        BlockEndings.begin { started = collector.start }
        yield
      ensure
        started&.stop
        # Also if the block raises: until it is flushed, a stopped collector is kept alive.
        profile = started&.flush(**settings.flush_options)
        profiler.warn_of_thinning(profile, collector) if profile
      end
      profile.write(out) if out
      profile
    ensure
      BlockEndings.leave(ending)
    end

    private

    def block_settings(**options)
      configuration = config
      allowed = (Configuration::COLLECTOR_SETTINGS + Configuration::FLUSH_SETTINGS).map(&:keyword)
      unknown = options.keys - allowed
      return configuration.merge(:argument, options) if unknown.empty?

      raise ArgumentError, "profile has no keyword #{unknown.join(", ")}; allowed are out, #{allowed.join(", ")}"
    end
  end
end
