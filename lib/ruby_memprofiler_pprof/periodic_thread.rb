# frozen_string_literal: true

require "ruby_memprofiler_pprof/background_thread"

module MemprofilerPprof
  # A thread that does some work at an interval, can be paused, can be stopped while it waits, and is restarted in a
  # forked child. What it allocates is not sampled.
  # @api private
  class PeriodicThread
    # The longest single wait in seconds; longer ones are split, since there is a limit to what a wait can take.
    LONGEST_WAIT = 3600
    # The part of the interval after which a forked child works for the first time.
    FIRST_IN_CHILD = (0.5..1.0)

    # The time that passes by itself. Specs have a clock that they move.
    module MonotonicClock
      module_function

      # @return [Float] seconds
      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      # Waits until the condition is signalled, for so many seconds at most, with the mutex released.
      # @param condition [ConditionVariable]
      # @param mutex [Mutex] which the caller holds
      # @param seconds [Numeric]
      # @return [void]
      def wait(condition, mutex, seconds)
        condition.wait(mutex, seconds)
      end
    end

    private_constant :LONGEST_WAIT, :FIRST_IN_CHILD, :MonotonicClock

    # @param interval [Numeric] seconds from the beginning of one piece of work to that of the next
    # @param name [String] the thread's name
    # @param priority [Integer, nil] Thread#priority
    # @param clock [#now, #wait] as {MonotonicClock}
    # @param work [Proc] must not raise
    def initialize(interval, name:, priority: nil, clock: MonotonicClock, &work)
      @interval = interval
      @name = name
      @priority = priority
      @clock = clock
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

    # Asks the thread to end and waits until it has.
    # @param timeout [Numeric, nil] how many seconds to wait at most; nil waits for ever
    # @return [Symbol] :ended, :hangs if it did not, or :none if there is no thread to end or it is the calling one
    def stop(timeout = nil)
      thread = @mutex.synchronize { take_thread }
      return :none if thread.nil? || thread == Thread.current

      BackgroundThread.ended?(thread, timeout) ? :ended : :hangs
    end

    # @param paused [Boolean] whether to skip the work; work that fell due in a pause is done at its end
    # @return [void]
    def paused=(paused)
      @mutex.synchronize do
        @paused = paused
        @wakeup.broadcast
      end
    end

    # Has the thread work at once, paused or not; the next interval begins then.
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

    # Starts the thread again in a forked child, where all threads but the forking one are gone. Its first interval is
    # shorter by a random part: processes that were forked together shall not work at the same moments.
    # @return [void]
    def after_fork
      first = @interval * Random.new.rand(FIRST_IN_CHILD)
      # Ruby unlocks mutexes that were held by threads which the child lacks.
      @mutex.synchronize { start_thread(first) }
    end

    private

    def start_thread(first = @interval)
      @thread = BackgroundThread.start(@name) { work_at_interval(first) }
      @thread.priority = @priority if @priority
    end

    # Work that takes longer than half of the interval puts off the next: at most half of the time is spent working.
    def work_at_interval(first)
      due = @clock.now + first
      while wait_until(due)
        began = @clock.now
        @work.call
        ended = @clock.now
        due = [began + @interval, ended + (ended - began)].max
      end
    end

    # @return [Boolean] false when the thread has to end, because #stop has removed it or #start has replaced it
    def wait_until(due)
      @mutex.synchronize do
        while @thread.equal?(Thread.current)
          return true if asked?

          seconds = @paused ? LONGEST_WAIT : [due - @clock.now, LONGEST_WAIT].min
          return true unless seconds.positive?

          @clock.wait(@wakeup, @mutex, seconds)
        end
      end
      false
    end

    # Whether work was asked for by #work_soon, which is forgotten by asking.
    def asked?
      @asked.tap { @asked = false }
    end

    def take_thread
      thread = @thread
      @thread = nil
      @wakeup.broadcast
      thread
    end
  end
end
