# frozen_string_literal: true

require "ruby_memprofiler_pprof/file_flusher"

module MemprofilerPprof
  # What the setting `cpu` does: samples the CPU time of this process, and writes files of it at the interval of the
  # others.
  # @api private
  class CPUFiles
    # Of what is in no later profile.
    class Flusher < FileFlusher
      private

      def loss(_profile)
        "the CPU time since the last file is lost"
      end
    end
    private_constant :Flusher

    # @param config [Configuration]
    # @param pattern [FilePattern]
    # @param logger [#error, #warn, #info]
    # @param former [CPUFiles, nil] whose files count as its own
    def initialize(config, pattern, logger, former = nil)
      @frequency = config.cpu_frequency
      @options = CPU.configured(config)
      @pattern = pattern
      @logger = logger
      @flusher = new_flusher(config, former&.flusher)
      @started = false
    end

    # Does nothing if it runs already. The program goes on without if this system cannot, or somebody else samples CPU
    # time.
    # @return [Boolean] whether it runs
    def start
      sample unless @started
      @flusher.start!
      true
    rescue Error, ThreadError => e
      abandon
      @logger.warn("no profile of CPU time: #{e.message}")
      false
    end

    # Adopts the settings of files.
    # @param config [Configuration]
    # @return [void]
    def update(config)
      former = @flusher
      flusher = new_flusher(config, former)
      flusher.start!
      @flusher = flusher
      former.abandon
    end

    # Ends sampling. {stop} follows, and writes the last file.
    # @return [void]
    def stopping
      CPU.stop if @started
      @flusher.stopping
    end

    # Ends sampling and writes the last file.
    # @return [void]
    def stop
      CPU.stop if @started
      @flusher.stop!
    end

    # Ends sampling and writes no more.
    # @return [void]
    def abandon
      CPU.stop if @started
      @started = false
      @flusher.abandon
    end

    # @return [Array<String>] the files that this process has written and keeps, oldest first
    def profiles
      @flusher.profiles
    end

    protected

    attr_reader :flusher

    private

    def sample
      # Before, since an exception from outside may come right after.
      @started = true
      CPU.start(frequency: @frequency, **@options)
    rescue Error
      @started = false
      raise
    end

    def new_flusher(config, former)
      flusher = Flusher.new(CPU, pattern: @pattern, interval: config.interval, logger: @logger,
                                 keep_files: config.keep_files, keep_days: config.keep_days)
      flusher.continue(former) if former
      flusher
    end
  end
end
