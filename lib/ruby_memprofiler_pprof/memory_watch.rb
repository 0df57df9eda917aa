# frozen_string_literal: true

require "ruby_memprofiler_pprof/abandoned_files"
require "ruby_memprofiler_pprof/atomic_file"
require "ruby_memprofiler_pprof/background_thread"
require "ruby_memprofiler_pprof/file_pattern"
require "ruby_memprofiler_pprof/running_flushers"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # Writes a profile when memory runs short, before the kernel kills the process; also when a NoMemoryError ends it.
  #
  # A native thread watches; see the setting `dump_above`. Each profile is a file of its own, which no {FileSeries}
  # thins out: it stays until {AbandonedFiles} removes it. It ends no interval of the collector.
  #
  # @!method self.begin(collector, part, bytes, path)
  #   Watches the memory of this process from now on.
  #   @param collector [Collector] which stays alive as long as the process
  #   @param part [Float, nil] of the cgroup's limit
  #   @param bytes [Integer, nil] of this process's resident memory, if there is no part
  #   @param path [String] as for `wait`, until then
  #   @return [Integer, nil] the number of what watches now; nil if there is nothing to watch: a part of no limit
  #   @raise [Error] if there can be no thread, or nothing can be seen of what the level is of
  # @!method self.wait(number, path)
  #   Waits until a profile is to be taken by this thread, which then has to call `done`.
  #   @param number [Integer] of what it takes profiles for
  #   @param path [String] the file to write in case that this thread does not get the GVL; in it the end of the year
  #     9999 stands for the time of writing
  #   @return [Array(String, Integer, Integer, Float, Boolean, Boolean), nil] why, bytes used, the limit in bytes if
  #     there is one, bytes per second of growth, whether this process is what fills the memory, and whether this is
  #     the last one; nil when watching has ended, or what watches has another number
  # @!method self.queue(waits)
  #   Says that this thread waits until other processes have taken their profiles, so that none has to be written
  #   without the GVL unless the limit is near.
  #   @param waits [Boolean] false when its turn has come
  #   @return [void]
  # @!method self.done
  #   Says that the profile is written, or cannot be.
  #   @return [String, nil] the file that was written without the GVL meanwhile, if one was
  # @!method self.end
  #   Ends watching.
  #   @return [void]
  # @api private
  class MemoryWatch
    # What comes before the extension in the files' names.
    SUFFIX = "-oom"
    # What the native thread replaces by the time at which it writes.
    LATER = Time.utc(9999, 12, 31, 23, 59, 59)
    # All at once: other threads would only use more memory meanwhile.
    AT_ONCE = { yield_gvl: false, proactively_yield_gvl: false }.freeze
    # What a failing profile may raise without ending the thread.
    SURVIVABLE = [StandardError, ScriptError, NoMemoryError, SystemStackError].freeze
    # Seconds to wait for a profile in progress when watching ends.
    TIMEOUT = 15
    # Seconds from one look to the next at whether it is this process's turn.
    LOOK_INTERVAL = 0.02
    # Which of them watches, and the lock for changes of that.
    @owner = nil
    @mutex = Mutex.new
    private_constant :LATER, :AT_ONCE, :SURVIVABLE, :TIMEOUT, :LOOK_INTERVAL

    # Makes a watch the one that watches, if the block begins that.
    # @return [Integer, nil] what the block returns: the number of what watches now, if it did
    def self.begin_for(watch)
      @mutex.synchronize { yield.tap { |number| @owner = watch if number } }
    end

    # Ends watching, unless another watch has begun since.
    # @return [void]
    def self.end_for(watch)
      @mutex.synchronize { MemoryWatch.end if @owner.equal?(watch) }
    end

    # @param pattern [FilePattern] of ordinary profiles
    # @return [FilePattern] of those that are written when memory runs short
    def self.pattern(pattern)
      pattern.with_suffix(SUFFIX)
    end

    # @param collector [Collector]
    # @param level [String, Integer] a part such as "90%" of the cgroup's limit, or bytes of resident memory
    # @param pattern [FilePattern] of ordinary profiles
    # @param keep_days [Numeric] how many days such files of ended processes stay; 0 keeps them for ever
    # @param logger [#warn, #error]
    def initialize(collector, level, pattern:, keep_days: 0, logger: StderrLogger)
      @collector = collector
      @level = level
      @pattern = self.class.pattern(pattern)
      @keep_days = keep_days
      @logger = logger
      @written = 0
    end

    # @return [self]
    def start
      begin_watching
      RunningFlushers.add_sink(self)
      self
    end

    # Ends watching.
    # @param timeout [Numeric] how many seconds to wait for a profile in progress
    # @return [void]
    def stop(timeout = TIMEOUT)
      RunningFlushers.remove_sink(self)
      end_watching(timeout)
    end

    # Watches a forked child, too, which has files and threads of its own.
    # @return [void]
    def after_fork
      @written = 0
      # As long as it is open here, a lock that the parent has on it is held.
      @queue&.close
      begin_watching
    end

    # Called when the process exits.
    # @return [void]
    def finish
      end_watching
      write("NoMemoryError") if RunningFlushers.reason.is_a?(NoMemoryError)
    end

    private

    def begin_watching
      part = @level.to_f / 100 if @level.is_a?(String)
      level = [part, part ? nil : @level]
      @number = MemoryWatch.begin_for(self) { MemoryWatch.begin(@collector, *level, path(LATER)) }
      return unless (mine = @number)

      @thread = BackgroundThread.start("ruby_memprofiler_pprof memory watch") { work(mine) }
      @thread.priority = 3
    rescue Error, ThreadError => e
      # Nobody would take the profiles that are asked for.
      MemoryWatch.end_for(self)
      log(:error, "memory is not watched: #{e.message}")
    end

    def end_watching(timeout = TIMEOUT)
      MemoryWatch.end_for(self)
      @number = nil
      thread = @thread
      @thread = nil
      BackgroundThread.ended?(thread, timeout) unless thread.nil? || thread == Thread.current
    end

    # A thread that is late, or still wrote when watching ended, does not wait for what another one watches.
    def work(mine)
      tidy
      while (alarm = MemoryWatch.wait(mine, path(LATER)))
        *figures, at_fault, last = alarm
        begin
          at_fault ? write(explain(*figures)) : in_turn(mine) { write(explain(*figures)) }
        ensure
          emergency = MemoryWatch.done
        end
        report(emergency, last)
      end
    end

    def report(emergency, last)
      log(:warn, "wrote #{emergency} without Ruby: no safe point came in time, or the limit was near") if emergency
      log(:warn, "that was the last profile of this process that is written when memory runs short") if last
    end

    # Now rather than before a file is written, when memory is short: a process writes few.
    def tidy
      AbandonedFiles.new(@pattern, @keep_days).remove(Time.now)
    rescue *SURVIVABLE => e
      log(:error, "old files were not removed: #{e.class}: #{e.message}")
    end

    # One process after another: together they would take what is left of the memory. Not at all if watching ends
    # before it is this one's turn, since a process that exits waits for it.
    def in_turn(mine)
      AtomicFile.make_directory_of(path)
      File.open(@pattern.common_directory) do |directory|
        @queue = directory
        MemoryWatch.queue(true)
        sleep(LOOK_INTERVAL) until (first = directory.flock(File::LOCK_EX | File::LOCK_NB)) || mine != @number
        MemoryWatch.queue(false)
        yield if first
      ensure
        # A child that was forked meanwhile may have it open for longer.
        directory.flock(File::LOCK_UN)
      end
    rescue *SURVIVABLE => e
      log(:error, "memory runs short: no profile: #{e.message}")
    end

    def path(time = Time.now)
      @pattern.expand(index: @written, time: time)
    end

    def write(reason)
      profile = @collector.peek(**AT_ONCE)
      written = AtomicFile.create(path, profile.pprof_data)
      @written += 1
      log(:warn, "#{reason}: wrote #{written}")
    rescue *SURVIVABLE => e
      log(:error, "#{reason}: no profile: #{e.message} (#{e.class})")
    end

    def explain(reason, used, limit, growth)
      mebibytes = ->(bytes) { bytes.fdiv(1 << 20).round }
      limited = " of #{mebibytes.call(limit)}" if limit
      "memory runs short (#{reason}; #{mebibytes.call(used)}#{limited} MiB used, " \
        "growing by #{mebibytes.call(growth)} MiB/s)"
    end

    def log(severity, message)
      @logger.public_send(severity, message)
    rescue *SURVIVABLE
      nil
    end
  end
end
