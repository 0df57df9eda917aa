# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"

module MemprofilerPprof
  module Rack
    # Limits how many requests are served at a time. Further ones are refused rather than made to wait.
    # @api private
    class Gate
      # @param limit [Integer]
      # @raise [ArgumentError, TypeError]
      def initialize(limit)
        @limit = Argument.integer(:max_concurrent, limit, from: 1)
        @inside = []
        @mutex = Mutex.new
      end

      # @return [Object, nil] the block's value; nil if there are too many
      def enter
        thread = Thread.current
        return unless @mutex.synchronize { admit(thread) }

        begin
          yield
        ensure
          @mutex.synchronize { @inside.delete_at(@inside.index(thread)) }
        end
      end

      private

      def admit(thread)
        # In a child that was forked in the meantime, the threads that were inside are dead.
        @inside.select!(&:alive?)
        @inside << thread if @inside.size < @limit
      end
    end
  end
end
