# frozen_string_literal: true

require "timeout"

# A clock for MemprofilerPprof::PeriodicThread that stands still until it is moved. A thread that waits by it ends its
# wait when it is woken up, or when the clock is moved.
class ManualClock
  # Seconds after which a thread that is expected to wait is taken to hang.
  PATIENCE = 60

  # In seconds: what the thread reads, and how long it meant to wait each time.
  attr_reader :now, :waits

  # @return [ManualClock] the one by which all threads go that are made from now on in this process
  def self.install
    new.tap do |clock|
      MemprofilerPprof::PeriodicThread.prepend(
        Module.new do
          define_method(:initialize) { |*values, **options, &work| super(*values, clock: clock, **options, &work) }
        end
      )
    end
  end

  def initialize
    @now = 0
    @waits = []
    @waiting = Queue.new
  end

  def wait(condition, mutex, seconds)
    @waits << seconds
    @waiting << [condition, mutex]
    condition.wait(mutex)
  end

  # Moves the clock. When this returns, the thread has done what fell due by that, and waits again.
  def advance(seconds)
    settle
    pass(seconds)
    settle
  end

  # Moves the clock for a thread that does not wait: its work takes so long.
  def pass(seconds)
    @now += seconds
  end

  # Returns when the thread has done all that it has been asked for, and waits.
  def settle
    condition, mutex = take
    # With the mutex: the thread begins to wait before this, and is woken up, or after it.
    mutex.synchronize do
      @waiting.clear
      condition.broadcast
    end
    @waiting << take
  end

  private

  def take
    Timeout.timeout(PATIENCE) { @waiting.pop }
  end
end
