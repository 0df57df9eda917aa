# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/attach"

module MemprofilerPprof
  class CLI
    # `detach`.
    class Detach < Command
      include Attaching

      SUMMARY = "stop the profiler that attach has started"
      USAGE = "[OPTION]... PID"
      DESCRIPTION = <<~TEXT
        Takes the profiler's hooks, threads and socket out of a process again, in the way in which attach has brought them
        there. Only its library stays in the process's memory.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} 4711
      TEXT

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      # @raise [Failure]
      def call(arguments)
        outcome = attachment(pid(arguments)).stop
        puts "detached in #{describe(outcome)}"
        0
      rescue ByPid::Error => e
        raise Failure, e.message
      end

      private

      def define_options(parser)
        define_timeout(parser)
      end
    end
  end
end
