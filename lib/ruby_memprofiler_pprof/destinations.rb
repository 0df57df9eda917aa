# frozen_string_literal: true

require "ruby_memprofiler_pprof/file_flusher"

module MemprofilerPprof
  # Where the profiles of the process's own profiler go: to files, to Pyroscope, to the block `on_flush`.
  # @api private
  class Destinations
    # @return [#error, #warn, #info] for the flushers, and who else runs with them
    attr_reader :logger

    # @param logger [#error, #warn, #info]
    def initialize(logger)
      @logger = logger
      @flusher_class = FileFlusher
    end

    # Adopts what a framework brings, from the next flusher on.
    # @param logger [#error, #warn, #info]
    # @param flusher_class [Class] a kind of {FileFlusher}
    # @param directory [String, nil] from which relative names of files are taken; nil is the current one, as of
    #   {remember_directory}
    # @return [void]
    def integrate(logger, flusher_class, directory)
      @logger = logger
      @flusher_class = flusher_class
      @given = directory
      @directory = directory if directory
    end

    # From now on relative names are taken from what is the current directory now, unless another one was given. A
    # daemon changes it, and a deployment may remove it.
    # @return [void]
    def remember_directory
      # Who needs it says so if it is gone.
      @directory = @given || UTF8.current_directory
    end

    # @param pattern [String]
    # @return [FilePattern] for names that are taken from the directory if they are relative
    def files(pattern)
      FilePattern.new(pattern, directory: @directory)
    end

    # @param tags [Hash, nil] of what goes to Pyroscope from now on
    def tags=(tags)
      @pyroscope&.tags = tags || {}
    end

    # @param collector [Collector]
    # @param config [Configuration]
    # @param files_by_default [Boolean] whether to write files if no setting says where profiles go
    # @return [BlockFlusher, nil] to be started; nil if profiles go nowhere
    # @raise [ArgumentError] naming the setting
    def flusher(collector, config, files_by_default)
      options = { **config.flusher_options, **callback(config) }
      return file_flusher(collector, config, options) if config.writes_files?(by_default: files_by_default)

      options = options.except(:pattern, :keep_files, :keep_days, :retainers_every)
      return BlockFlusher.new(collector, logger: @logger, **options) if options[:on_flush]

      warn_of_vain_settings(config)
    end

    # @return [Array<String>] the files of all flushers that this process keeps, oldest first
    def profiles
      @file_flusher ? @file_flusher.profiles : []
    end

    # @return [Array<String>] those of CPU time
    def cpu_profiles
      @cpu_files ? @cpu_files.profiles : []
    end

    # @param config [Configuration]
    # @return [CPUFiles] to be started
    # @raise [ArgumentError] naming the setting
    def cpu_files(config)
      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/cpu_files"
      @cpu_files = CPUFiles.new(config, files(config.cpu_pattern), @logger, @cpu_files)
    end

    private

    # The files of all of them together are as many as a process keeps.
    def file_flusher(collector, config, options)
      flusher = @flusher_class.new(collector, logger: @logger, **options, pattern: files(config.pattern))
      flusher.continue(@file_flusher) if @file_flusher
      @file_flusher = flusher
    end

    # @return [Hash{Symbol => Object}] keywords of a flusher that sends profiles to Pyroscope, if that is set
    def callback(config)
      pyroscope = pyroscope(config) or return {}

      on_flush = config.on_flush
      both = lambda do |profile|
        pyroscope.call(profile)
      ensure
        on_flush.call(profile)
      end
      # Pyroscope knows no other names.
      { on_flush: on_flush ? both : pyroscope, sample_type_names: :go }
    end

    # One for all starts with the same settings, since each has a thread.
    def pyroscope(config)
      return unless config.pyroscope_url

      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/pyroscope/deferred"
      options = Pyroscope::Deferred.options(config)
      return @pyroscope if @pyroscope&.options == options

      @pyroscope&.retire
      @pyroscope = Pyroscope::Deferred.new(options, @logger)
    end

    def warn_of_vain_settings(config)
      # Files of CPU time are written at the interval, too.
      keywords = config.cpu ? %i[dump_on] : %i[interval dump_on]
      vain = keywords.reject { |keyword| config.source(keyword) == :default }
      return if vain.empty?

      @logger.warn("#{vain.join(", ")}: no effect, as profiles go nowhere; set files, on_flush or pyroscope_url")
      nil
    end
  end
end
