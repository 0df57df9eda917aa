# frozen_string_literal: true

module MemprofilerPprof
  module Rack
    # Lets no more than so many requests through at a time; nobody waits.
    # @api private
    class Gate
      # @param limit [Integer]
      # @raise [ArgumentError, TypeError]
      def initialize(limit)
        raise TypeError, "max_concurrent must be an Integer above 0, got #{limit.inspect}" unless limit.is_a?(Integer)
        raise ArgumentError, "max_concurrent must be an Integer above 0, got #{limit}" unless limit.positive?

        @limit = limit
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
        # In a child that was forked meanwhile the threads that were inside do not go on.
        @inside.select!(&:alive?)
        @inside << thread if @inside.size < @limit
      end
    end
  end
end
