# frozen_string_literal: true

require "ruby_memprofiler_pprof/abandoned_files"
require "ruby_memprofiler_pprof/atomic_file"
require "ruby_memprofiler_pprof/block_flusher"
require "ruby_memprofiler_pprof/file_pattern"
require "ruby_memprofiler_pprof/file_series"
require "ruby_memprofiler_pprof/memory_watch"
require "ruby_memprofiler_pprof/peak_file"
require "ruby_memprofiler_pprof/retainers_file"

module MemprofilerPprof
  # Flushes a collector at an interval and writes each profile to a file of its own.
  #
  # A file appears under its name only when it is complete, is readable by its owner only, and never replaces another: a
  # number is put before the extension where the name is taken. Missing directories are made. If writing fails (a full
  # disk, a read-only directory), the log says what was lost, and the next flush tries again. A forked child writes its
  # own files and counts them from 0.
  #
  # With `retainers_every`, some profiles have a file beside them that records who holds the heap, and is removed with
  # them. With the collector's option `track_peak`, a file beside the first profile has what was alive when the process
  # had the most memory; it is replaced when there is a higher peak.
  #
  # Old files are removed: of its own files it keeps the first and the newest, and in between ever fewer ({FileSeries});
  # those of processes that have ended stay for some days ({AbandonedFiles}), and so does what a {MemoryWatch} has
  # written.
  #
  # @example
  #   collector = MemprofilerPprof::Collector.new(sample_rate: 0.01).start
  #   MemprofilerPprof::FileFlusher.new(collector, interval: 300).start!
  class FileFlusher < BlockFlusher
    # Where profiles go when no pattern is given.
    DEFAULT_PATTERN = "tmp/profiles/mem-%{pid}-%{isotime}.pprof"
    # Seconds from one look at the old files to the next.
    TIDY_INTERVAL = 3600
    # Seconds in which it must be found out who holds the heap. A process that exits waits for it.
    RETAINERS_TIMEOUT = 10
    private_constant :TIDY_INTERVAL, :RETAINERS_TIMEOUT

    # @param collector [Collector, Reader] as for {BlockFlusher#initialize}
    # @param pattern [String, Pathname, FilePattern] the names of the files, see {FilePattern}
    # @param interval [Numeric] seconds, as for {BlockFlusher#initialize}
    # @param logger [#error, #warn, #info, nil] as for {BlockFlusher#initialize}; each file is an `info`
    # @param on_flush [#call, nil] in place of a block
    # @param keep_files [Integer] how many of its own files it keeps; 0 keeps all
    # @param keep_days [Numeric] how many days files of ended processes stay; 0 keeps them for ever
    # @param retainers_every [Integer] with each so many files, a file beside it records who holds the heap
    #   ({Collector#retainers}); 0 records nothing
    # @param priority [Integer, nil] as for {BlockFlusher#initialize}
    # @param flush_options [Hash{Symbol => Object}] as for {BlockFlusher#initialize}
    # @yieldparam profile [ProfileData] of each flush, after it was written, or could not be; as for
    #   {BlockFlusher#initialize}. No block is needed
    # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
    def initialize(collector, pattern: DEFAULT_PATTERN, interval: 30, logger: nil, on_flush: nil, keep_files: 100,
                   keep_days: 7, retainers_every: 0, priority: nil, **flush_options, &block)
      super(collector, interval: interval, logger: logger, on_flush: on_flush, priority: priority, **flush_options,
            &block)
      self.pattern = pattern
      @keep_files = Argument.integer(:keep_files, keep_files)
      @keep_days = Argument.number(:keep_days, keep_days)
      @retainers_every = Argument.integer(:retainers_every, retainers_every)
      begin_series
    end

    # @return [FilePattern] of the files from now on
    # @api private
    attr_reader :file_pattern

    # @return [String] the pattern as it was given
    def pattern
      @file_pattern.to_s
    end

    # @param pattern [String, Pathname, FilePattern] for the files from now on, see {FilePattern}
    # @raise [ArgumentError, TypeError] as {FilePattern#initialize}
    def pattern=(pattern)
      @file_pattern = pattern.is_a?(FilePattern) ? pattern : FilePattern.new(pattern)
    end

    # Makes the directory of the next file, which only its owner can enter.
    # @return [void]
    # @api private
    def make_directory
      AtomicFile.make_directory_of(@file_pattern.expand(index: @written))
    rescue SystemCallError
      # The log will say so of the file.
      nil
    end

    # @return [Array<String>] the files of this process that are kept, oldest first
    # @api private
    def profiles
      @pid == Process.pid ? @series.paths : []
    end

    # Goes on with the files of another flusher, which count as its own from now on.
    # @param former [FileFlusher]
    # @return [void]
    # @api private
    def continue(former)
      @pid, @written, @peak, @peak_path, @series = former.progress
      @series.keep = @keep_files
    end

    protected

    def progress
      [@pid, @written, @peak, @peak_path, @series]
    end

    private

    def delivers?
      true
    end

    def flush
      # Before, since the last flush of a collector that was stopped forgets it.
      @new_peak = new_peak
      super
    end

    def deliver(profile)
      write(profile)
      super
    end

    def write(profile)
      begin_series unless @pid == Process.pid
      # Before the file is written, which may need the room.
      tidy(Time.now)
      path = @file_pattern.expand(index: @written)
      path = AtomicFile.create(path, profile.pprof_data)
      @written += 1
      @series.add(path, Process.clock_gettime(Process::CLOCK_MONOTONIC), *retainers_beside(path))
      write_peak
      written(path, profile)
    rescue SystemCallError, IOError => e
      failed(e, "cannot write #{path}: #{e.message}; #{loss(profile)}")
    end

    # @return [String] what is lost with a profile
    def loss(profile)
      "the allocations since the last flush are lost (#{profile.allocation_samples_count} samples), live objects " \
        "will be in the next profile"
    end

    # @return [Array(Integer, ProfileData), nil] the resident bytes and the profile, if there is a new one
    def new_peak
      # Neither a reader nor CPU time has one.
      return unless @collector.respond_to?(:peak_profile) && @collector.track_peak

      MemprofilerPprof.without_profiling do
        bytes = @collector.stats[:tracked_peak_rss_bytes]
        [bytes, @collector.peak_profile(**@flush_options)] if bytes && bytes != @peak
      end
    rescue *SURVIVABLE => e
      log(:warn, "the peak of memory was not recorded: #{e.message} (#{e.class})")
      nil
    end

    # Beside the first profile, also when that is another one than before.
    def write_peak
      path = PeakFile.beside(@series.paths.first)
      move_peak(path)
      bytes, profile = @new_peak
      return unless profile

      AtomicFile.write(path, profile.pprof_data)
      @peak = bytes
      @peak_path = path
    rescue SystemCallError, IOError => e
      log(:error, "cannot write the peak of memory: #{e.message}")
    end

    def move_peak(path)
      old = @peak_path
      return if old.nil? || old == path

      @peak_path = path
      File.rename(old, path)
    end

    # @return [String, nil] the file, if it was its turn
    def retainers_beside(path)
      @retainers_due ||= @retainers_every.positive? && (@written % @retainers_every).zero?
      return unless @retainers_due

      retainers = alone { @collector.retainers(timeout: RETAINERS_TIMEOUT) }
      AtomicFile.create(RetainersFile.beside(path), retainers.pprof_data) if retainers
    rescue *SURVIVABLE => e
      log(:warn, "who holds the heap was not recorded: #{e.message} (#{e.class})")
      nil
    end

    # One process at a time, since it takes memory, and workers that were forked together write their files together.
    # Otherwise with the next file.
    def alone
      File.open(@file_pattern.common_directory) do |directory|
        next unless directory.flock(File::LOCK_EX | File::LOCK_NB)

        @retainers_due = false
        yield
      ensure
        # A child that was forked meanwhile may have it open for longer.
        directory.flock(File::LOCK_UN)
      end
    end

    # What is done when a file has been written. Subclasses extend this.
    def written(path, _profile)
      log(:info, "wrote #{path}")
    end

    # In a forked child too: the parent's files are not its own.
    def begin_series
      @pid = Process.pid
      @written = 0
      @peak = @peak_path = nil
      @retainers_due = false
      @series = FileSeries.new(@keep_files)
      @tidied = nil
    end

    # Once an hour, also by a clock that was set back.
    def tidy(now)
      return if @tidied && (now - @tidied).abs < TIDY_INTERVAL

      @tidied = now
      @series.touch(now)
      patterns = [@file_pattern, MemoryWatch.pattern(@file_pattern)]
      patterns.each { |pattern| AbandonedFiles.new(pattern, @keep_days).remove(now) }
    rescue *SURVIVABLE => e
      log(:error, "old files were not removed: #{e.class}: #{e.message} (#{e.backtrace&.first})")
    end
  end
end
