# frozen_string_literal: true

module MemprofilerPprof
  # A thread that does some work at an interval, can be paused, ends at once when it is told to, and comes back in a
  # forked child. What the thread allocates is not sampled.
  # @api private
  class PeriodicThread
    # The longest single wait in seconds. Longer ones are made of several: there are limits to what a wait can take.
    LONGEST_WAIT = 3600
    private_constant :LONGEST_WAIT

    # @param interval [Numeric] seconds from the beginning of one piece of work to that of the next
    # @param name [String] the thread's name
    # @param priority [Integer, nil] Thread#priority
    # @param work [Proc] must not raise
    def initialize(interval, name:, priority: nil, &work)
      @interval = interval
      @name = name
      @priority = priority
      @work = work
      @paused = false
      @asked = false
      @mutex = Mutex.new
      @wakeup = ConditionVariable.new
    end

    # Starts the thread if there is none, or none alive.
    # @return [void]
    def start
      @mutex.synchronize do
        next if alive?

        @paused = @asked = false
        start_thread
      end
    end

    # Tells the thread to end and waits until it has.
    # @param patience [Numeric, nil] the seconds to wait at most; nil is for ever
    # @return [Symbol] :ended, :hangs if it did not, or :none if there is no thread to end or it is the calling one
    def stop(patience = nil)
      thread = @mutex.synchronize { take_thread }
      return :none if thread.nil? || thread == Thread.current

      ended?(thread, patience) ? :ended : :hangs
    end

    # @param paused [Boolean] whether to skip the work; work that fell due in a pause is done at its end
    # @return [void]
    def paused=(paused)
      @mutex.synchronize do
        @paused = paused
        @wakeup.broadcast
      end
    end

    # Has the thread work at once, paused or not; the interval begins anew then.
    # @return [void]
    def work_soon
      @mutex.synchronize do
        @asked = true
        @wakeup.broadcast
      end
    end

    # @return [Boolean]
    def paused?
      @paused
    end

    # @return [Boolean]
    def alive?
      @thread&.alive? ? true : false
    end

    # Starts the thread again in a forked child, where all threads but the forking one are gone.
    # @return [void]
    def after_fork
      # Ruby has unlocked a mutex that a thread which is gone held.
      @mutex.synchronize { start_thread }
    end

    private

    def start_thread
      # A local, because the thread would be sampled looking the constant up: that allocates a cache.
      profiler = MemprofilerPprof
      profiler.without_profiling do
        @thread = Thread.new { profiler.without_profiling { work_at_interval } }
        @thread.name = @name
        # Puma warns of threads that a fork would lose; this one comes back.
        @thread.thread_variable_set(:fork_safe, true)
        @thread.priority = @priority if @priority
      end
    end

    # Work that takes longer than half of the interval puts off the next: at most half of the time is spent working.
    def work_at_interval
      due = now + @interval
      while wait_until(due)
        began = now
        @work.call
        ended = now
        due = [began + @interval, ended + (ended - began)].max
      end
    end

    # @return [Boolean] false when the thread has to end, which is when it is not this object's any more
    def wait_until(due)
      @mutex.synchronize do
        while @thread.equal?(Thread.current)
          return true if asked?

          seconds = @paused ? LONGEST_WAIT : [due - now, LONGEST_WAIT].min
          return true unless seconds.positive?

          @wakeup.wait(@mutex, seconds)
        end
      end
      false
    end

    # Whether there was a request, which is taken by that.
    def asked?
      @asked.tap { @asked = false }
    end

    def take_thread
      thread = @thread
      @thread = nil
      @wakeup.broadcast
      thread
    end

    def ended?(thread, patience)
      !thread.join(patience).nil?
    rescue Exception # rubocop:disable Lint/RescueException
      # join raises what ended the thread, which is of no interest here, or what somebody raised in this one.
      raise if thread.alive?

      true
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
