# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid"

module MemprofilerPprof
  class CLI
    # `ps`.
    class Ps < Command
      SUMMARY = "list the Ruby processes of this machine"
      USAGE = ""
      DESCRIPTION = <<~TEXT
        Lists the Ruby processes of this machine that you may look into: the PID, the version of Ruby, whether the profiler is
        loaded, and the command. Linux only.
      TEXT
      EXAMPLES = <<~TEXT
        %{me}
        sudo %{me}
      TEXT

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      def call(arguments)
        expect_none(arguments)
        puts ByPid.run("ps")
        0
      rescue ByPid::Error => e
        raise Failure, e.message
      end
    end
  end
end
