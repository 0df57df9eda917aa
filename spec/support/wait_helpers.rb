# frozen_string_literal: true

# Waits for what another thread or process does.
module WaitHelpers
  # Seconds that only a hang reaches, however busy the machine is.
  PATIENCE = 300

  # Yields until the block's value is true, and returns that.
  # @raise [RuntimeError] after {PATIENCE}, with where all threads are
  def wait_until(what: "it")
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    loop do
      value = yield
      return value if value
      if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        raise "#{what} did not happen within #{PATIENCE} s; threads:\n#{threads_now.join("\n")}"
      end

      sleep 0.005
    end
  end

  private

  # @return [Array<String>] name, state and innermost calls of each thread
  def threads_now
    Thread.list.map { |thread| [thread.inspect, *thread.backtrace&.first(6)].join("\n    ") }
  end
end
