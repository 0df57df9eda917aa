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
    def initialize(config, pattern, logger)
      @frequency = config.cpu_frequency
      @options = { labels: config.labels, thread_names: config.thread_names }
      @flusher = Flusher.new(CPU, pattern: pattern, interval: config.interval, logger: logger,
                                  keep_files: config.keep_files, keep_days: config.keep_days)
      @logger = logger
    end

    # The program goes on without if this system cannot, or somebody else samples CPU time.
    # @return [CPUFiles]
    def start
      CPU.start(frequency: @frequency, **@options)
      @flusher.start!
      self
    rescue Error => e
      without(e)
    rescue ThreadError => e
      CPU.stop
      without(e)
    end

    # Writes the last file.
    # @return [void]
    def stop
      return unless @flusher.running?

      @flusher.stop!
      CPU.stop
    end

    private

    def without(error)
      @logger.warn("no profile of CPU time: #{error.message}")
      self
    end
  end
end
