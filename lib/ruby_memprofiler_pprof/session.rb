# frozen_string_literal: true

require "ruby_memprofiler_pprof/configuration"
require "ruby_memprofiler_pprof/memory_watch"
require "ruby_memprofiler_pprof/running_flushers"

module MemprofilerPprof
  # A run of this process's profiler, from a start to a stop: what belongs to it besides the collector, which it neither
  # starts nor stops. All but {stop} waits for nothing, and is called with a lock held.
  # @api private
  class Session
    # The settings that a flusher takes when it is made.
    FLUSHER_KEYWORDS = (Configuration::FLUSH_SETTINGS + Configuration::FLUSHER_SETTINGS +
                        Configuration::DESTINATION_SETTINGS).map(&:keyword).freeze
    # Those among them that do not need another one.
    LIVE_KEYWORDS = %i[pattern tags].freeze
    CPU_KEYWORDS = Configuration::CPU_SETTINGS.map(&:keyword).freeze
    # What files of CPU time have in common with the others.
    FILE_KEYWORDS = %i[interval keep_files keep_days].freeze
    private_constant :FLUSHER_KEYWORDS, :LIVE_KEYWORDS, :CPU_KEYWORDS, :FILE_KEYWORDS

    # @return [BlockFlusher, nil] a {FileFlusher} if it writes files
    attr_reader :flusher

    # @param collector [Collector]
    # @param destinations [Destinations]
    def initialize(collector, destinations)
      @collector = collector
      @destinations = destinations
    end

    # Makes what the settings ask for and is not there yet. So what is wrong is found before anything starts.
    # @param config [Configuration]
    # @param files_by_default [Boolean] whether to write files if no setting says where profiles go
    # @return [void]
    # @raise [ArgumentError] naming the setting
    def prepare(config, files_by_default)
      @config = config
      @files_by_default ||= files_by_default
      @flusher ||= @destinations.flusher(@collector, config, @files_by_default)
      @cpu_files ||= @destinations.cpu_files(config) if config.cpu
      @next_watch = new_watch
    end

    # Starts what was prepared, as far as it does not run.
    # @return [void]
    # @raise [ThreadError] if there can be no more threads
    def start
      RunningFlushers.add_sink(self)
      @flusher&.start!
      watch(@next_watch)
      @cpu_files = nil unless @cpu_files && start_cpu(@cpu_files)
    end

    # Adopts a configuration.
    # @param config [Configuration]
    # @param changed [Array<Symbol>] the settings that are different
    # @return [void]
    # @raise [ArgumentError] naming the setting
    def update(config, changed)
      @config = config
      update_flusher(changed & FLUSHER_KEYWORDS)
      update_cpu(changed)
      watch(new_watch) if changed.intersect?(%i[dump_above pattern files])
    end

    # Says that {stop} follows. A child that is forked before that has nothing of this.
    # @return [void]
    def stopping
      @stopping = true
      RunningFlushers.remove_sink(@watch) if @watch
      @cpu_files&.stopping
      @flusher&.stopping
    end

    # Ends everything, and has profiles delivered a last time. Calling it again ends what an exception has left.
    # @return [void]
    def stop
      @watch&.stop
      @cpu_files&.stop
      # Writes what was alive when the collector stopped.
      @flusher&.stop!
      RunningFlushers.remove_sink(self)
    end

    # Ends everything without delivering anything: for a start that has failed.
    # @return [void]
    def abandon
      RunningFlushers.remove_sink(self)
      @watch&.stop(0)
      @cpu_files&.abandon
      @flusher&.abandon
    end

    # Called in a forked child, which lacks the thread that was in {stop}.
    # @return [void]
    def after_fork
      @watch = @cpu_files = @flusher = nil if @stopping
    end

    # Called when the process exits.
    # @return [void]
    def finish; end

    private

    def update_flusher(changed)
      @destinations.tags = @config.tags
      return replace_flusher if (changed - LIVE_KEYWORDS).any? || (changed.any? && @flusher.nil?)

      # Only where there is one that writes files, or else a pattern has no effect.
      moves = changed.include?(:pattern) && @flusher.respond_to?(:pattern=)
      @flusher.pattern = @destinations.files(@config.pattern) if moves
    end

    def replace_flusher
      former = @flusher
      flusher = @destinations.flusher(@collector, @config, @files_by_default)
      flusher&.start!
      flusher&.pause if former&.paused?
      @flusher = flusher
      former&.abandon
    end

    def update_cpu(changed)
      waiting = changed & CPU_KEYWORDS
      if @cpu_files
        @cpu_files.update(@config) if changed.intersect?(FILE_KEYWORDS)
        return if waiting.empty?

        @destinations.logger.warn("#{waiting.join(", ")}: takes effect at the next MemprofilerPprof.start after a stop")
      elsif waiting.any? && @config.cpu
        cpu_files = @destinations.cpu_files(@config)
        @cpu_files = cpu_files if start_cpu(cpu_files)
      end
    end

    # @return [Boolean] whether it runs
    def start_cpu(cpu_files)
      # Before that of the CPU files, as a mere parent of which it would have the mode of the umask.
      @flusher.make_directory if @flusher.is_a?(FileFlusher)
      cpu_files.start
    end

    # By default only a process that writes files at all writes one when memory runs short.
    def new_watch
      level = @config.dump_above
      writes_files = @flusher.is_a?(FileFlusher)
      return unless level && (writes_files || @config.source(:dump_above) != :default)

      # That of the flusher's files, or of those that one would write.
      pattern = writes_files ? @flusher.file_pattern : @destinations.files(@config.pattern)
      MemoryWatch.new(@collector, level, pattern: pattern, keep_days: @config.keep_days, logger: @destinations.logger)
    end

    # Does not wait for the former: its thread may be in a logger that needs the lock.
    def watch(watch)
      @watch&.stop(0)
      @watch = watch
      @watch&.start
    end
  end
end
