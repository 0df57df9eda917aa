# frozen_string_literal: true

module MemprofilerPprof
  # Starts the threads that this gem runs in the program. What they allocate is not sampled.
  # @api private
  module BackgroundThread
    # @param name [String] the thread's name
    # @yield in the new thread
    # @return [Thread]
    # @raise [ThreadError] if there can be no more threads
    def self.start(name, &work)
      # A local, because the thread would be sampled looking the constant up: that allocates a cache.
      profiler = MemprofilerPprof
      profiler.without_profiling do
        thread = Thread.new do
          profiler.without_profiling do
            # A thread inherits what its starter masks, and then nobody could kill it.
            Thread.handle_interrupt(Object => :immediate) { work.call }
          end
        end
        thread.name = name
        leave_group(thread)
        # Puma warns of threads that a fork would lose; those of this gem come back, or are not needed in the child.
        thread.thread_variable_set(:fork_safe, true)
        thread
      end
    end

    # Waits for a thread to end. Whatever ended it is not raised here.
    # @param thread [Thread]
    # @param timeout [Numeric, nil] how many seconds to wait at most; nil waits for ever
    # @return [Boolean] whether it has ended
    def self.ended?(thread, timeout)
      !thread.join(timeout).nil?
    rescue Exception # rubocop:disable Lint/RescueException
      # join raises what ended the thread, which then has no status, or what another thread raised in this one.
      raise unless thread.status.nil?

      true
    end

    # A program may wait for all threads of a group of its own.
    def self.leave_group(thread)
      ThreadGroup::Default.add(thread)
    rescue ThreadError
      # The group is enclosed.
      nil
    end
    private_class_method :leave_group
  end
end
