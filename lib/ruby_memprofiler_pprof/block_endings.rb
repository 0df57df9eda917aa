# frozen_string_literal: true

require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # What ends with a block. In a child that another thread forks while the block runs, the block never ends: what was to
  # end with it does so right after the fork.
  # @api private
  module BlockEndings
    # How each one ends, and the thread that runs its block.
    @threads = {}.compare_by_identity

    class << self
      # Must be called before the block, so that it allocates nothing in there, and be followed by {leave}.
      #
      # @yield in such a child
      # @return [Object] for {leave}
      def enter(&ending)
        # Nothing that ends like this can begin elsewhere.
        @threads[ending] = Thread.current if Ractor.current.equal?(Ractor.main)
        ending
      end

      # Begins what a block ends. An exception from outside, such as a timeout, comes before or after, but not where it
      # has begun and the block's `ensure` does not know yet.
      #
      # @yield begins it, and sets what the `ensure` asks
      # @return [Object] what the block returned
      def begin(&)
        Thread.handle_interrupt(Object => :on_blocking, &)
      end

      # @param ending [Object] what {enter} has returned
      # @return [void]
      def leave(ending)
        @threads.delete(ending) if Ractor.current.equal?(Ractor.main)
      end

      # Called in a forked child.
      # @return [void]
      def after_fork
        @threads.reject { |_, thread| thread.alive? }.each_key do |ending|
          @threads.delete(ending)
          ending.call
        rescue Error => e
          StderrLogger.warn(e.message)
        end
      end
    end
  end
end
