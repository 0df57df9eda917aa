# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    # Yields what it is given, and says on a terminal how much that was, once it takes longer than a second.
    class Progress
      include Enumerable

      # Seconds without a message.
      PATIENCE = 1
      private_constant :PATIENCE

      # @param profiles [Enumerable]
      # @param count [Integer] how many it yields
      # @param out [IO] where to say so, if it is a terminal
      # @param clock [#call] gives seconds
      def initialize(profiles, count, out: $stderr, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
        @profiles = profiles
        @count = count
        @out = out if out.tty?
        @clock = clock
        @line = ""
      end

      # @yieldparam [Object] each
      def each
        start = @clock.call
        @profiles.each_with_index do |profile, index|
          show("Read #{index + 1} of #{@count} profiles") if @out && @clock.call - start > PATIENCE
          yield profile
        end
      ensure
        show("") unless @line.empty?
      end

      private

      # In place of what was shown last, without escape sequences, which not all terminals know.
      def show(line)
        @out.print("\r#{line.ljust(@line.size)}#{"\r" if line.empty?}")
        @out.flush
        @line = line
      end
    end
  end
end
