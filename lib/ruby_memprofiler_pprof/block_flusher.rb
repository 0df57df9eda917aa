# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/periodic_thread"
require "ruby_memprofiler_pprof/running_flushers"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # Flushes a collector at an interval, in a thread of its own, and hands each profile to a block.
  #
  # A flusher neither starts nor stops its collector: call `collector.start` before or after {#start!}, as early in the
  # program as possible. Empty profiles are delivered if the collector has run since the last one. Flushing a collector
  # that was never started logs an error.
  #
  # It lives as long as the process. Forked children and daemons have a thread of their own, with the same interval, of
  # which the first is shorter at random, so that workers do not flush at the same moments. A flusher that still runs
  # when the process exits (not by `exit!` or a signal that kills) flushes once more, in forked children too. What the
  # flush and the block allocate is not sampled. Several flushers may share a collector: live objects are in the
  # profiles of each, allocations only in those of the flusher that flushes next, unless each has a {Reader} of its own.
  #
  # @example
  #   collector = MemprofilerPprof::Collector.new(sample_rate: 0.01).start
  #   flusher = MemprofilerPprof::BlockFlusher.new(collector, interval: 60) do |profile|
  #     bucket.put(profile.pprof_data)
  #   end
  #   flusher.start!
  class BlockFlusher
    # What a failing flush or block may raise without ending the flusher.
    SURVIVABLE = [StandardError, ScriptError, NoMemoryError, SystemStackError].freeze
    # How many seconds an exiting process waits for a flush in progress, and from one look at it to the next.
    EXIT_TIMEOUT = 15
    LOOK_INTERVAL = 0.02
    private_constant :SURVIVABLE, :EXIT_TIMEOUT, :LOOK_INTERVAL

    # @return [Collector, Reader]
    attr_reader :collector
    # @return [Numeric] seconds from the beginning of one flush to that of the next
    attr_reader :interval

    # @param collector [Collector, Reader] a {Reader} gives the flusher allocations of its own
    # @param interval [Numeric] seconds, above 0. A flush that takes longer than half of it delays the next one: at
    #   most half of the time is spent flushing
    # @param logger [#error, #warn, #info, nil] for instance a Logger; nil writes warnings and errors to stderr
    # @param on_flush [#call, nil] in place of a block
    # @param priority [Integer, nil] Thread#priority of the flusher's thread, -3..3
    # @param flush_options [Hash{Symbol => Object}] keywords for each {Collector#flush}, such as `gc`, `max_hold` or
    #   `sample_type_names`
    # @yieldparam profile [ProfileData] of each flush. The block is called in the flusher's thread, the last time in the
    #   thread that stops it. What it raises is logged, and that profile is lost
    # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
    def initialize(collector, interval: 30, logger: nil, on_flush: nil, priority: nil, **flush_options, &block)
      @collector = Argument.check(:collector, collector, "a MemprofilerPprof::Collector", TypeError) do
        collector.respond_to?(:flush)
      end
      @interval = Argument.seconds(:interval, interval)
      @logger = logger || StderrLogger
      @on_flush = Argument.check(:on_flush, on_flush, "nil or something to call", TypeError) do
        on_flush.nil? || on_flush.respond_to?(:call)
      end
      take(block)
      Argument.check(:priority, priority, "nil or an Integer", TypeError) { priority.nil? || priority.is_a?(Integer) }
      Collector.check_flush_options(**flush_options)
      @flush_options = flush_options
      @thread = PeriodicThread.new(interval, name: "ruby_memprofiler_pprof flusher", priority: priority) { flush }
      # Whether the collector has run since the last flush.
      @ran = false
      # Threads in #stop!; the array is replaced, never changed.
      @stopping = []
      @mutex = Mutex.new
    end

    # Starts the thread, unless it runs already. Replaces one that was killed.
    # @return [self]
    def start!
      @ran = @collector.running?
      @thread.start
      RunningFlushers.add(self)
      self
    end

    # Ends the thread, waits for a flush in progress, and flushes once more, in the calling thread and even when paused.
    # Does nothing if it does not run. Called from within the block, it neither waits nor flushes again.
    # @return [self]
    # @raise [ThreadError] in a signal handler, where Ruby allows no locks; let a new Thread do it
    def stop!
      stopping
      flush if @thread.stop == :ended
      self
    ensure
      @mutex.synchronize { @stopping -= [Thread.current] }
      RunningFlushers.remove(self)
    end

    # Says that {#stop!} follows. A child that is forked before that gets no thread.
    # @return [void]
    # @api private
    def stopping
      @mutex.synchronize { @stopping |= [Thread.current] }
    end

    # Ends the thread without waiting for it, and flushes no more.
    # @return [void]
    # @api private
    def abandon
      @thread.stop(0)
      RunningFlushers.remove(self)
    end

    # Starts, yields and stops, also when the block raises.
    # @return [Object] the block's value
    def run
      start!
      begin
        yield
      ensure
        stop!
      end
    end

    # Skips the flushes at the interval until {#unpause}. Sampling continues.
    # @return [self]
    def pause
      @thread.paused = true
      self
    end

    # Flushes at the interval again, and at once if a flush was due in the meantime.
    # @return [self]
    def unpause
      @thread.paused = false
      self
    end

    # Has the flusher's thread flush at once, even when paused, without waiting for it. Does nothing if it does not run.
    # @return [self]
    # @raise [ThreadError] in a signal handler, as {#stop!}; see the setting `dump_on`
    def flush_soon
      @thread.work_soon if running?
      self
    end

    # @return [Boolean] between {#pause} and {#unpause}
    def paused?
      @thread.paused?
    end

    # @return [Boolean] whether there is a living thread, paused or not
    def running?
      @thread.alive?
    end

    # Restarts the thread in a forked child, unless it was being stopped.
    # @api private
    def after_fork
      return @thread.after_fork if @stopping.empty?

      @stopping = @stopping.select(&:alive?)
      RunningFlushers.remove(self)
    rescue ThreadError => e
      log(:error, "no thread in the forked process: #{e.message}")
    end

    # Stops when the process exits, which a flush that hangs must not prevent.
    # @api private
    def finish
      ended = @thread.stop(EXIT_TIMEOUT)
      flush if ended == :ended
      return unless ended == :hangs || (ended == :none && !stopped?(EXIT_TIMEOUT))

      log(:error, "no last flush: one did not end within #{EXIT_TIMEOUT} s of the process's exit")
    ensure
      RunningFlushers.remove(self)
    end

    private

    # Of a block and on_flush, one is called.
    def take(block)
      raise ArgumentError, "on_flush and a block are given, of which only one can be called" if @on_flush && block

      @on_flush ||= block
      raise ArgumentError, "BlockFlusher.new needs a block, or on_flush" unless @on_flush || delivers?
    end

    # Whether profiles go anywhere without a block. Subclasses override this, and {#deliver}.
    def delivers?
      false
    end

    # Waits for other threads in #stop!.
    # @return [Boolean] whether there are none any more
    def stopped?(timeout)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + timeout
      while @stopping.any? { |thread| thread.alive? && thread != Thread.current }
        return false if Process.clock_gettime(Process::CLOCK_MONOTONIC) >= deadline

        sleep(LOOK_INTERVAL)
      end
      true
    end

    # What is done with a profile. Subclasses extend this.
    def deliver(profile)
      @on_flush&.call(profile)
    end

    def flush
      MemprofilerPprof.without_profiling do
        running = @collector.running?
        profile = @collector.flush(**@flush_options)
        ran = @ran || running
        @ran = running
        deliver(profile) if ran || !profile.empty?
      end
    rescue *SURVIVABLE => e
      failed(e, "flushing failed: #{e.class}: #{e.message} (#{e.backtrace&.first})")
    end

    # What is done when a profile is lost. Subclasses extend this.
    def failed(_error, message)
      log(:error, message)
    end

    # A logger that fails is no reason to stop flushing.
    def log(severity, message)
      @logger.public_send(severity, "#{self.class}: #{message}")
    rescue *SURVIVABLE
      nil
    end
  end
end
