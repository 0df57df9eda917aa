# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid"
require "ruby_memprofiler_pprof/cli/run"

module MemprofilerPprof
  class CLI
    # What `attach`, `detach` and `record` have in common.
    module Attaching
      private

      # PID and options may come in any order.
      def parse(arguments)
        parser.permute!(arguments)
      end

      # @return [Integer]
      # @raise [Failure]
      def pid(arguments)
        raise Failure, "exactly one PID is needed, see #{@invocation} --help" unless arguments.size == 1

        Integer(arguments.first, 10, exception: false) || raise(Failure, "#{arguments.first} is no PID")
      end

      # @return [ByPid::Attachment]
      def attachment(pid)
        # Loaded only here, since the overview of all commands does not need it.
        require "ruby_memprofiler_pprof/base"
        require "ruby_memprofiler_pprof/by_pid/attachment"
        ByPid::Attachment.new(pid, **{ timeout: @timeout }.compact)
      end

      def define_timeout(parser)
        parser.on("--timeout SECONDS", Integer, "give up if the process is in one long C call, 1 to 3600",
                  "(default: 30)") do |seconds|
          @timeout = check(seconds, 3600)
        end
      end

      def describe(outcome)
        pauses = outcome.pauses.map { |pause| format("%.2f", pause * 1000) }.join(", ")
        format("%<loaded>.1f s, of which its main thread was stopped for %<pauses>s ms", loaded: outcome.loaded,
                                                                                         pauses: pauses)
      end
    end

    # `attach`.
    class Attach < Run
      include Attaching

      SUMMARY = "start the profiler in a Ruby process that runs already"
      USAGE = "[OPTION]... PID"
      DESCRIPTION = <<~TEXT
        Brings the profiler into a running Ruby 3.1 or newer that was started without it: nothing of its program, Gemfile or
        environment changes. Then top, dump, why, memory and record take its PID. What was allocated before is in no
        profile. Profiles are written to files only if --files or --pattern says so. Linux on x86_64 only.

        The process's main thread is stopped for some microseconds, one to a few times. The profiler is loaded by a new
        thread, at a point where the process could run a handler of signals; a process that reaches none before --timeout,
        as it is inside one long C call, goes on without it.

        Each option takes the place of the variable below it in the process's environment.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} 4711
        %{me} --rate 0.1 --timeout 60 4711
        memprofiler top 4711
        memprofiler detach 4711
      TEXT

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      # @raise [Failure]
      def call(arguments)
        outcome = attachment(pid(arguments)).start(variables)
        puts "attached in #{describe(outcome)}"
        puts "socket: #{MemprofilerPprof::Report::SiteText.printable(outcome.socket.to_s)}"
        0
      rescue ByPid::Error => e
        raise Failure, e.message
      end

      private

      def define_other(parser)
        define_timeout(parser)
      end
    end
  end
end
