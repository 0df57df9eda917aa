# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"

module MemprofilerPprof
  module Rack
    # Limits how many requests are served at a time. Further ones are refused rather than made to wait.
    # @api private
    class Gate
      # A constant, since a Hash made at the moment asks its keys for their hash, which is a moment for a timeout.
      LATER = { Object => :never }.freeze
      private_constant :LATER

      # @return [Integer]
      attr_reader :limit

      # @param limit [Integer]
      # @raise [ArgumentError, TypeError]
      def initialize(limit)
        @limit = Argument.integer(:max_concurrent, limit, from: 1)
        @inside = []
        @mutex = Mutex.new
      end

      # @return [Object, nil] the block's value; nil if there are too many
      def enter
        inside = false
        # A timeout that comes meanwhile is raised afterwards.
        Thread.handle_interrupt(LATER) { inside = admit(Thread.current) }
        yield if inside
      ensure
        Thread.handle_interrupt(LATER) { leave(Thread.current) if inside }
      end

      private

      def admit(thread)
        @mutex.synchronize { add(thread) }
      end

      def leave(thread)
        @mutex.synchronize { @inside.delete_at(@inside.index(thread)) }
      end

      def add(thread)
        # In a child that was forked in the meantime, the threads that were inside are dead.
        @inside.select!(&:alive?)
        @inside << thread if @inside.size < @limit
      end
    end
  end
end
