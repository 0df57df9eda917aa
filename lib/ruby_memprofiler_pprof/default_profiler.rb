# frozen_string_literal: true

require "ruby_memprofiler_pprof/configuration"
require "ruby_memprofiler_pprof/destinations"
require "ruby_memprofiler_pprof/on_demand"
require "ruby_memprofiler_pprof/remote_control"
require "ruby_memprofiler_pprof/service"
require "ruby_memprofiler_pprof/session"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # What is behind {MemprofilerPprof.start} and its like: the configuration, the collector and the flusher of this
  # process. Any thread may call it; a forked child keeps using it.
  # @api private
  class DefaultProfiler
    # @return [#error, #warn, #info]
    attr_reader :logger
    # @return [OnDemand]
    attr_reader :on_demand

    # @param env [ENV, Hash{String => String}] is read once, when it is first needed
    def initialize(env = ENV)
      @env = env
      @mutex = Mutex.new
      @logger = StderrLogger
      @destinations = Destinations.new(@logger)
      @on_demand = OnDemand.new(self)
      @remote_control = RemoteControl.new(self, @destinations)
      @session = nil
      # Those that are being stopped; the array is replaced, never changed.
      @ending = []
      # Whether to write files if no setting says where profiles go.
      @files_by_default = false
    end

    # @return [Configuration]
    def config
      @config || @mutex.synchronize { @config ||= read_environment }
    end

    # @param source [Symbol] where the settings come from: :configure or :framework
    # @yieldparam draft [Configuration] a copy that can be written; nothing changes if the block raises
    # @return [Configuration]
    def configure(source = :configure)
      draft = config.dup
      yield draft
      all_or_nothing { update(@config.merge(source, draft.assigned)) }
      config
    end

    # Lets a framework's integration bring its own flusher, logger and directory, from the next start on.
    # @param flusher_class [Class] a kind of {FileFlusher}
    # @param logger [#error, #warn, #info] for the messages of the flusher, and of this object
    # @param directory [String, nil] from which relative names of files are taken; nil is the current one
    # @param on_start [#call, nil] is called before each start, and now if the profiler runs already
    # @return [void]
    def integrate(flusher_class:, logger:, directory: nil, on_start: nil)
      @logger = logger
      @destinations.integrate(logger, flusher_class, directory)
      @on_start = on_start
      patch if running?
    end

    # @return [Boolean] false if the setting `enabled` is, or if the environment is wrong: then nothing can start either
    def enabled?
      config.enabled
    rescue ArgumentError
      false
    end

    # @return [Collector]
    def collector
      config
      @collector || @mutex.synchronize { @collector ||= Collector.new(**@config.collector_options) }
    end

    # @return [Boolean]
    def running?
      @collector&.running? ? true : false
    end

    # @return [BlockFlusher, nil] a {FileFlusher} if it writes files
    def flusher
      @session&.flusher
    end

    # @return [Array<String>] the files that this process has written and keeps, oldest first; without those of CPU time
    def files
      @destinations.profiles
    end

    # @return [Array<String>] those of CPU time
    def cpu_files
      @destinations.cpu_profiles
    end

    # @param settings [Hash{Symbol => Object}]
    # @return [Collector]
    def start(**settings)
      collector
      end_sessions
      all_or_nothing do
        @destinations.remember_directory unless running?
        update(@config.merge(:argument, settings))
        launch
      end
      @collector
    end

    # Starts the profiler of a process that is profiled from its beginning, unless it is configured to start paused.
    # Whatever starts it from now on, it writes files by default.
    # @return [void]
    def boot
      @files_by_default = true
      return start unless config.start_paused && config.enabled

      all_or_nothing do
        @destinations.remember_directory
        @remote_control.listen(:everywhere, @config)
      end
      return if config.toggle_on

      @logger.warn("start_paused: only MemprofilerPprof.start starts it, as toggle_on is not set")
    end

    # @return [void]
    def stop
      halt
      @mutex.synchronize do
        # Another thread may have started it meanwhile.
        next if running? || @config.nil?

        update(@config.without(:argument), listening: @remote_control.listening && :signals)
      end
    end

    # Starts or stops.
    # @return [void]
    def toggle
      collector
      return halt if running?

      end_sessions
      all_or_nothing { launch }
    end

    # Delivers a profile soon.
    # @return [void]
    def dump
      flusher = self.flusher
      return flusher.flush_soon if flusher&.running?

      reason = "profiles go nowhere"
      reason = "the flusher's thread has ended, MemprofilerPprof.start begins another" if flusher
      reason = "the profiler is not running" unless running?
      @logger.warn("no profile: #{reason}")
    end

    # @return [String, nil] the file of this process's socket, if it is open
    def socket
      @remote_control.socket
    end

    # @return [String, nil] why it could not be opened
    def socket_problem
      @remote_control.socket_problem
    end

    # @return [Hash{Integer => String}] the sockets of the processes that run by the same setting `socket`, this one's
    #   among them, by process id; empty if it has no `%{pid}` or there is none
    def siblings
      @remote_control.siblings
    end

    # @param profile [ProfileData] of a block
    # @param collector [Collector] that it is from
    # @return [void]
    def warn_of_thinning(profile, collector)
      dropped = profile.dropped_samples_heap_bufsize
      return if dropped.zero?

      limit = collector.stats[:stack_overflows].zero? ? :max_heap_samples : :max_stack_bytes
      @logger.warn("#{dropped} samples of a block's profile were dropped because of #{limit} " \
                   "(#{collector.public_send(limit)}), so its figures are estimates; pass more to " \
                   "MemprofilerPprof.profile to keep all")
    end

    private

    def read_environment
      configuration = Configuration.from_env(@env)
      configuration.unknown.each do |variable|
        suggestion = Configuration.suggestion_for(variable)
        @logger.warn("#{variable} is not a setting#{suggestion}, `memprofiler help run` lists all")
      end
      configuration
    end

    # Yields with the lock held. If that fails, or is interrupted, everything is as it was before.
    def all_or_nothing
      @mutex.synchronize do
        before = [@config, @remote_control.listening, @session, running?]
        yield
        before = nil
      ensure
        restore(*before) if before
      end
    end

    def restore(config, listening, session, running)
      @collector&.stop unless running
      @session&.abandon unless @session.equal?(session)
      @session = session
      update(config, listening: listening)
    rescue StandardError, ScriptError => e
      # What has failed before is raised, not this.
      @logger.error("the settings could not be restored: #{e.message}")
    end

    def launch
      return @logger.info("not profiling: the setting enabled is false") unless @config.enabled

      Service.detect
      patch
      session = @session || Session.new(@collector, @destinations)
      session.prepare(@config, @files_by_default)
      @remote_control.listen(:everywhere, @config)
      @collector.start
      @session = session
      session.start
      warn_of_no_samples
    end

    # With CPU time it is on purpose: that alone is sampled then.
    def warn_of_no_samples
      return if @config.cpu || @config.sample_rate.positive?

      @logger.warn("sample_rate is 0: no allocation is sampled, and profiles stay empty")
    end

    # Patches the program's libraries so that samples get their labels.
    def patch
      @on_start&.call
      return unless @config.labels && defined?(::OpenTelemetry::Context)

      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/opentelemetry"
      OpenTelemetry.install
    end

    def halt
      @mutex.synchronize do
        @collector&.stop
        @session&.stopping
        @ending += [@session].compact
        @session = nil
      end
      @on_demand.close
      end_sessions
    end

    # Waits for flushers without holding the lock: their threads may be in a subscriber or logger that needs it. What an
    # exception leaves running ends with the next stop, or before the next start.
    def end_sessions
      @ending.each do |session|
        session.stop
        @mutex.synchronize { @ending -= [session] }
      end
    end

    # Adopts a configuration, and passes on what has changed.
    def update(configuration, listening: @remote_control.listening)
      before = @config
      @config = configuration
      changed = Configuration.settings.map(&:keyword).reject { |keyword| before[keyword] == configuration[keyword] }
      update_collector(changed & Configuration::COLLECTOR_SETTINGS.map(&:keyword))
      @logger.warn("enabled: takes effect at the next MemprofilerPprof.start") if changed.include?(:enabled) && running?
      @session&.update(configuration, changed)
      @remote_control.listen(listening, configuration)
    end

    def update_collector(changed)
      return unless @collector

      changed.each { |keyword| @collector.public_send("#{keyword}=", @config[keyword]) }
      return unless changed.include?(:liveness) && running?

      @logger.warn("liveness takes effect when the collector has been stopped, flushed and started again")
    end
  end
end
