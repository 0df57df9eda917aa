# frozen_string_literal: true

require "timeout"

# A clock for MemprofilerPprof::PeriodicThread that only moves when told to. A thread that waits on it stops waiting
# when it is woken up, or when the clock is moved.
class ManualClock
  # Seconds after which a thread that should be waiting is considered hung.
  PATIENCE = 60

  # In seconds: what the thread reads, and how long it meant to wait each time.
  attr_reader :now, :waits

  # @return [ManualClock] the clock of all threads created from now on in this process
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

  # Moves the clock. When this returns, the thread has done what fell due, and waits again.
  def advance(seconds)
    settle
    pass(seconds)
    settle
  end

  # Moves the clock for a thread that is not waiting: its work takes this long.
  def pass(seconds)
    @now += seconds
  end

  # Returns when the thread has done everything it was asked for, and waits.
  def settle
    condition, mutex = take
    # Under the mutex: the thread starts to wait either before this, and is woken up, or after it.
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
