# frozen_string_literal: true

require "ruby_memprofiler_pprof/configuration"
require "ruby_memprofiler_pprof/destinations"
require "ruby_memprofiler_pprof/memory_watch"
require "ruby_memprofiler_pprof/on_demand"
require "ruby_memprofiler_pprof/service"
require "ruby_memprofiler_pprof/signal_actions"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # What is behind {MemprofilerPprof.start} and its like: the configuration, the collector and the flusher of this
  # process. Any thread may call it; a forked child keeps using it.
  # @api private
  class DefaultProfiler
    # The settings that a flusher takes when it is made.
    FLUSHER_KEYWORDS = (Configuration::FLUSH_SETTINGS + Configuration::FLUSHER_SETTINGS +
                        Configuration::DESTINATION_SETTINGS).map(&:keyword).freeze
    CPU_KEYWORDS = Configuration::CPU_SETTINGS.map(&:keyword).freeze
    private_constant :FLUSHER_KEYWORDS, :CPU_KEYWORDS

    # @return [BlockFlusher, nil] a {FileFlusher} if it writes files
    attr_reader :flusher
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
      @listening = nil
      @files_by_default = true
      @signals = SignalActions.new { |action| action == :toggle ? toggle : dump }
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
      @destinations = Destinations.new(logger, flusher_class, directory: directory)
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

    # @param files_by_default [Boolean] whether to write files if no setting says where profiles go
    # @param settings [Hash{Symbol => Object}]
    # @return [Collector]
    def start(files_by_default: false, **settings)
      collector
      all_or_nothing do
        update(@config.merge(:argument, settings))
        launch(files_by_default)
      end
      @collector
    end

    # Starts the profiler of a process that is profiled from its beginning, unless it is configured to start paused.
    # @return [void]
    def boot
      return start(files_by_default: true) unless config.start_paused && config.enabled

      all_or_nothing { listen(:everywhere) }
    end

    # @return [void]
    def stop
      halt
      @mutex.synchronize do
        # Another thread may have started it meanwhile.
        next if running? || @config.nil?

        @listening &&= :signals
        update(@config.without(:argument))
      end
    end

    # Starts or stops, with the settings of the last start; by default to files if that was so, or there was none.
    # @return [void]
    def toggle
      collector
      return halt if running?

      all_or_nothing { launch(@files_by_default) }
    end

    # Delivers a profile soon.
    # @return [void]
    def dump
      flusher = @flusher
      return flusher.flush_soon if flusher&.running?

      @logger.warn("no profile: #{running? ? "profiles go nowhere" : "the profiler is not running"}")
    end

    # @return [String, nil] the file of this process's socket, if it is open
    def socket
      @server&.path
    end

    # @return [Hash{Integer => String}] the sockets of the processes that run by the same setting `socket`, this one's
    #   among them, by process id; empty if it has no `%{pid}` or there is none
    def siblings
      @server&.siblings || {}
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
      names = Configuration.settings.filter_map(&:name)
      configuration.unknown.each do |variable|
        suggestion = Configuration.suggestion(variable.delete_prefix(Configuration::PREFIX), names)
        @logger.warn("#{variable} is not a setting#{suggestion}, `memprofiler help run` lists all")
      end
      configuration
    end

    # Yields with the lock held. If the block raises, everything is restored to what it was before.
    def all_or_nothing
      @mutex.synchronize do
        before = @config
        listening = @listening
        idle = !running?
        yield
      rescue StandardError, ScriptError
        @collector&.stop if idle
        @listening = listening
        update(before)
        raise
      end
    end

    def launch(files_by_default)
      return @logger.info("not profiling: the setting enabled is false") unless @config.enabled

      Service.detect
      patch
      listen(:everywhere)
      flusher = @flusher || @destinations.flusher(@collector, @config, files_by_default)
      @collector.start
      @flusher = flusher&.start!
      watch_memory
      sample_cpu
      @files_by_default = files_by_default
    end

    def sample_cpu
      return if @cpu_files || !@config.cpu

      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/cpu_files"
      @cpu_files = CPUFiles.new(@config, @destinations.files(@config.cpu_pattern), @logger).start
    end

    # Patches the program's libraries so that samples get their labels.
    def patch
      @on_start&.call
      return unless @config.labels && defined?(::OpenTelemetry::Context)

      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/opentelemetry"
      OpenTelemetry.install
    end

    # Waits for the flusher without holding the lock: its thread may be in a subscriber or logger that needs the lock.
    def halt
      flusher, watch, cpu_files = @mutex.synchronize do
        @collector&.stop
        [@flusher, @memory_watch, @cpu_files].tap { @flusher = @memory_watch = @cpu_files = nil }
      end
      watch&.stop
      cpu_files&.stop
      @on_demand.close
      # Writes what was alive when the collector stopped.
      flusher&.stop!
    end

    # By default only a process that writes files at all writes one when memory runs short.
    def watch_memory
      return unless running?

      # Does not wait: its thread may be in a logger that needs the lock.
      @memory_watch&.stop(0)
      @memory_watch = nil
      level = @config.dump_above
      return unless level && (@flusher.is_a?(FileFlusher) || @config.source(:dump_above) != :default)

      # That of the flusher's files, or of those that one would write.
      pattern = @flusher.is_a?(FileFlusher) ? @flusher.file_pattern : @destinations.files(@config.pattern)
      @memory_watch =
        MemoryWatch.new(@collector, level, pattern: pattern, keep_days: @config.keep_days, logger: @logger).start
    end

    # Installs the signal handlers and opens the socket that are configured, or removes them.
    # @param where [Symbol, nil] :everywhere; :signals for no socket, as after a stop; or nil for neither
    def listen(where)
      @listening = where
      @signals.install(:dump, (@config.dump_on if where))
      @signals.install(:toggle, (@config.toggle_on if where))
      serve((@config.socket if where == :everywhere))
    end

    # Adopts a configuration, and passes on what has changed.
    def update(configuration)
      before = @config
      @config = configuration
      changed = Configuration.settings.map(&:keyword).reject { |keyword| before[keyword] == configuration[keyword] }
      update_collector(changed & Configuration::COLLECTOR_SETTINGS.map(&:keyword))
      @logger.warn("enabled: takes effect at the next MemprofilerPprof.start") if changed.include?(:enabled) && running?
      update_flusher(changed & FLUSHER_KEYWORDS)
      update_cpu(changed)
      watch_memory if changed.intersect?(%i[dump_above pattern])
      listen(@listening)
    end

    # @param pattern [String, nil] of the socket's name; nil for none
    def serve(pattern)
      return if @server&.pattern == pattern

      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/socket_server" if pattern
      server = (SocketServer.new(self, @destinations.files(pattern), logger: @logger) if pattern)
      @server&.stop
      @server = server&.start
    end

    def update_collector(changed)
      return unless @collector

      changed.each { |keyword| @collector.public_send("#{keyword}=", @config[keyword]) }
      return unless changed.include?(:liveness) && running?

      @logger.warn("liveness takes effect when the collector has been stopped, flushed and started again")
    end

    def update_cpu(changed)
      return (sample_cpu if running?) unless @cpu_files

      # A flusher of the heap's files warns of what they have in common.
      warn_of_restart(changed & (CPU_KEYWORDS + (@flusher ? [] : %i[interval keep_files keep_days])))
    end

    def update_flusher(changed)
      return unless @flusher

      @destinations.tags = @config.tags
      moves = @flusher.respond_to?(:pattern=) && changed.delete(:pattern)
      @flusher.pattern = @destinations.files(@config.pattern) if moves
      warn_of_restart(changed)
    end

    def warn_of_restart(changed)
      return if changed.empty?

      @logger.warn("#{changed.join(", ")}: takes effect at the next MemprofilerPprof.start after a stop")
    end
  end
end
