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
        again. Ctrl-C, or the signal TERM or HUP, ends the time early. If the process has the profiler already, it is
        only asked for a profile of the next seconds, at most 60, and keeps it; Ctrl-C gives that up. With --cpu the
        profile says where CPU time goes. `memprofiler help attach` says more.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} 4711
        %{me} --seconds 300 -o growth.pprof 4711
        %{me} --cpu -o slow.pprof 4711
      TEXT
      # Seconds.
      LENGTH = 30
      LONGEST = 86_400
      # The process itself waits for so long at most.
      LONGEST_ASKED = 60
      PATTERN = "tmp/profiles/record-%{pid}-%{isotime}.pprof"
      # Apart from those of the heap, since commands take a directory for files of one kind.
      CPU_PATTERN = "tmp/profiles/cpu/record-%{pid}-%{isotime}.pprof"
      private_constant :LENGTH, :LONGEST, :LONGEST_ASKED, :PATTERN, :CPU_PATTERN

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      # @raise [Failure]
      def call(arguments)
        pid = pid(arguments)
        check_seconds("with --cpu") if @cpu
        check_output(@output, pattern)
        attachment = attachment(pid)
        socket = attachment.socket
        write(until_done(attachment) { socket ? of_profiled(pid, socket) : between(attachment) }, pid)
        @stays ? TROUBLE : 0
      rescue ByPid::Error => e
        raise Failure, e.message
      end

      private

      def define_options(parser)
        parser.separator("Options:")
        parser.on("--seconds N", Integer, "how long, 1 to #{LONGEST}; with --cpu to #{LONGEST_ASKED}",
                  "(default: #{LENGTH})") { |seconds| @seconds = check(seconds, LONGEST) }
        parser.on("-o", "--output FILE", "where to write; - is stdout", "(default: #{PATTERN};",
                  "with --cpu #{CPU_PATTERN})") do |file|
          @output = file
        end
        parser.on("--cpu", "profile CPU time rather than memory") { @cpu = true }
        super
      end

      # Here --cpu is about this profile, not about files that the process writes.
      def offers?(setting)
        super && !setting.keyword.start_with?("cpu")
      end

      # @return [String] a profile
      def of_profiled(pid, socket)
        check_seconds("for a process that has the profiler already")
        ask(pid, socket, length)
      end

      # @return [String] a profile
      def between(attachment)
        outcome = attachment.start(variables)
        begin
          # While the process can be seen.
          socket = attachment.outside(outcome.socket)
          report = "attached in #{describe(outcome)}"
          @cpu ? tell(report) : wait(attachment, report)
          ask(attachment.pid, socket, nil)
        ensure
          stop(attachment)
          remove(socket) if socket && attachment.fate
        end
      end

      # Its failure is no reason to lose the profile, nor is a second Ctrl-C, or another signal.
      def stop(attachment)
        attachment.stop unless attachment.fate
      rescue ByPid::Error, SystemCallError, SignalException => e
        return if attachment.fate

        @stays = true
        reason = e.is_a?(SignalException) ? "interrupted" : e.message
        tell "could not detach: #{reason}; then: memprofiler detach #{attachment.pid}"
      end

      # The socket that a process has left, and on which no other one listens.
      def remove(path)
        require "ruby_memprofiler_pprof/socket_server/listener"
        File.unlink(path) if File.lstat(path).socket? && SocketServer::Listener.abandoned?(path)
      rescue SystemCallError
        # The process has removed it, or it cannot be seen from here.
        nil
      end

      # @raise [Failure] if the block fails as the process has ended, or become another program
      def until_done(attachment)
        yield
      rescue Failure, ByPid::Error
        fate = attachment.fate or raise
        raise Failure, "process #{attachment.pid} #{fate} before the time was up: no profile"
      end

      def check_seconds(reason)
        return if length <= LONGEST_ASKED

        raise Failure, "--seconds must be in 1..#{LONGEST_ASKED} #{reason}, got #{length}"
      end

      def length
        @seconds || LENGTH
      end

      # @param seconds [Integer, nil] over which to count allocations; nil is since the profiler's start
      # @return [String] a profile
      def ask(pid, socket, seconds)
        require "ruby_memprofiler_pprof/cli/source"
        source = UnixSocket.new(socket, pid: pid)
        @cpu ? source.read_cpu(length) : source.read(seconds)
      rescue Source::Unavailable => e
        raise Failure, e.message unless e.message.start_with?("a CPU profile is being taken already")

        raise Failure, "process #{pid} takes a CPU profile already: read the files that it writes, or stop that"
      end

      def write(bytes, pid)
        return write_output(bytes, @output) if @output

        puts AtomicFile.create(FilePattern.new(pattern).expand(pid: pid), bytes)
      end

      def pattern
        @cpu ? CPU_PATTERN : PATTERN
      end

      # Until the time is up, or the process cannot be asked any more.
      # @param report [String] to begin with; who reads it may send a signal at once
      def wait(attachment, report)
        tell report
        length.times { attachment.fate ? break : sleep(1) }
      rescue SignalException => e
        # The terminal that sends HUP is closed: nothing can be written there.
        tell "ends early" unless e.signo == Signal.list["HUP"]
      end
    end
  end
end
