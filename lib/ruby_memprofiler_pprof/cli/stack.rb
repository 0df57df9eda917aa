# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid"

module MemprofilerPprof
  class CLI
    # `stack`.
    class Stack < Command
      SUMMARY = "show what the threads of a running process do"
      USAGE = "[OPTION]... PID"
      DESCRIPTION = <<~TEXT
        Prints the Ruby stack of each thread of a process, innermost call first, which thread has the GVL, and what the others
        do. The process needs no profiler: its memory is read from outside, and it goes on meanwhile. Linux on x86_64 only.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} 1234
        sudo %{me} --pause 1234
      TEXT

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      def call(arguments)
        pid, *rest = arguments
        raise Failure, "no process given, see #{@invocation} --help" unless pid

        expect_none(rest)
        puts ByPid.run("stack", pid, *("pause" if @pause), *("json" if @json))
        0
      rescue ByPid::Error => e
        raise Failure, e.message
      end

      private

      # The PID and options may come in any order.
      def parse(arguments)
        parser.permute!(arguments)
      end

      def define_options(parser)
        parser.on("--pause", "stop the process for the moment that it takes to read it") { @pause = true }
        parser.on("--json", "print JSON") { @json = true }
      end
    end
  end
end
