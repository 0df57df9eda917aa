# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # Blocks to call around a fork, as pthread_atfork(3) does in C.
  #
  # They are called for every way in which Ruby code creates a process that keeps running Ruby: `fork`, `Process.fork`,
  # `IO.popen("-")` (all through `Process._fork`) and `Process.daemon`. They are not called for `spawn`, `system` or
  # backticks, which run another program.
  module Atfork
    # When a block can be called: in the process that is about to fork, then in the parent and in the child.
    STAGES = %i[prepare parent child].freeze

    # A block that was registered, and can be removed again.
    class Handler
      # @return [Symbol] one of {STAGES}
      attr_reader :stage
      # @return [Proc]
      attr_reader :block

      # @api private
      def initialize(stage, block)
        @stage = stage
        @block = block
      end

      # Calls the block.
      def call
        block.call
      end

      # Removes the block: it is not called any more. Doing so twice is harmless.
      # @return [void]
      def remove!
        Atfork.remove(self)
      end
    end

    # Intercepts forks. Kernel#fork and popen all end in `_fork`; `daemon` does not. Both return 0 in the child, and
    # the parent of a daemon never comes back.
    # @api private
    module Hooks
      # @return [Integer] 0 in the child, the child's pid in the parent
      def _fork
        Atfork.around { super }
      end

      # @return [Integer] 0
      def daemon(*)
        Atfork.around { super }
      end
    end

    @handlers ||= [].freeze
    @mutex ||= Mutex.new

    class << self
      # Registers a block. Blocks of one stage are called in the order of their registration; an error in one is a
      # warning on stderr, and neither stops the others nor the fork.
      #
      # @param stage [Symbol] :prepare, :parent or :child
      # @return [Handler]
      # @raise [ArgumentError] without a block, or when the stage is none of {STAGES}
      # @example
      #   handler = MemprofilerPprof::Atfork.at_fork(:child) { reconnect }
      #   handler.remove!
      def at_fork(stage = :prepare, &block)
        raise ArgumentError, "at_fork needs a block" unless block

        Argument.one_of(:stage, stage, STAGES)
        Handler.new(stage, block).tap { |handler| replace { |handlers| handlers + [handler] } }
      end

      # @return [Array<Handler>] those registered now, in the order in which they are called
      def at_fork_handlers
        @handlers
      end

      # Removes a handler.
      # @api private
      def remove(handler)
        replace { |handlers| handlers.reject { |other| other.equal?(handler) } }
      end

      # Runs the blocks around what forks: a block that returns 0 in the child, anything else in the parent.
      # @api private
      def around
        run(:prepare)
        begin
          pid = yield
        ensure
          # Also when the fork failed: what :prepare blocks have acquired (a lock, say) has to be released.
          run(:parent) unless pid&.zero?
        end
        run(:child) if pid.zero?
        pid
      end

      # Prepends the hooks to `_fork` and `daemon`. Doing so twice is harmless.
      # @api private
      def install
        Process.singleton_class.prepend(Hooks)
      end

      private

      def run(stage)
        @handlers.each { |handler| call(handler) if handler.stage == stage }
      end

      def call(handler)
        handler.call
      rescue StandardError, ScriptError => e
        StderrLogger.error("an at_fork block (#{handler.stage}) failed: #{e.class}: #{e.message}")
      end

      # The list is replaced, never changed, so that a fork at any moment sees a whole one.
      def replace
        @mutex.synchronize { @handlers = yield(@handlers).freeze }
        nil
      end
    end

    install
  end
end
