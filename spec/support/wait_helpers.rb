# frozen_string_literal: true

# Waits for what another thread or process does.
module WaitHelpers
  # Yields until the block's value is true, and returns that.
  # @param timeout [Numeric] seconds: so many that only a hang reaches them, however busy the machine is
  # @raise [RuntimeError] after the timeout
  def wait_until(timeout: 60, what: "it")
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + timeout
    loop do
      value = yield
      return value if value
      raise "#{what} did not happen within #{timeout} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.005
    end
  end
end
