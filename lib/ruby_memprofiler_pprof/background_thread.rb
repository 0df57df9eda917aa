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
        thread = Thread.new { profiler.without_profiling { work.call } }
        thread.name = name
        # Puma warns of threads that a fork would lose; those of this gem come back, or are not needed in the child.
        thread.thread_variable_set(:fork_safe, true)
        thread
      end
    end
  end
end
