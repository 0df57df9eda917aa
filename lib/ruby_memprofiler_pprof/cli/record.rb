# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/attach"

module MemprofilerPprof
  class CLI
    # `record`.
    class Record < Attach
      SUMMARY = "profile a Ruby process that runs already for a while, into a file"
      USAGE = "[OPTION]... PID"
      DESCRIPTION = <<~TEXT
        Attaches to a process, writes a profile of what it has allocated since, and of what is alive of that, and detaches
        again. Ctrl-C ends the time early. If the process has the profiler already, it is only asked for the profile, and
        keeps it. `memprofiler help attach` says more.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} 4711
        %{me} --seconds 300 -o slow.pprof 4711
      TEXT
      # Seconds.
      LENGTH = 30
      LONGEST = 86_400
      PATTERN = "tmp/profiles/record-%{pid}-%{isotime}.pprof"
      private_constant :LENGTH, :LONGEST, :PATTERN

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      # @raise [Failure]
      def call(arguments)
        pid = pid(arguments)
        attachment = attachment(pid)
        socket = attachment.socket
        bytes = socket ? after_a_while(socket) : between(attachment)
        target = @output || FilePattern.new(PATTERN).expand(pid: pid)
        AtomicFile.make_directory_of(target) unless target == "-"
        write_output(bytes, target)
        0
      rescue ByPid::Error => e
        raise Failure, e.message
      end

      private

      def define_options(parser)
        parser.on("--seconds N", Integer, "how long, 1 to #{LONGEST} (default: #{LENGTH})") do |seconds|
          @seconds = check(seconds, LONGEST)
        end
        parser.on("-o", "--output FILE", "where to write; - is stdout", "(default: #{PATTERN})") do |file|
          @output = file
        end
        super
      end

      # @return [String] a profile
      def between(attachment)
        outcome = attachment.start(variables)
        warn "#{@invocation}: attached in #{describe(outcome)}"
        begin
          after_a_while(attachment.outside(outcome.socket))
        ensure
          attachment.stop
        end
      end

      def after_a_while(socket)
        wait
        require "ruby_memprofiler_pprof/cli/source"
        UnixSocket.new(socket).read(nil)
      rescue Source::Unavailable => e
        raise Failure, e.message
      end

      def wait
        sleep(@seconds || LENGTH)
      rescue Interrupt
        warn "#{@invocation}: ends early"
      end
    end
  end
end
