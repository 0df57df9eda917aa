# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/source_options"

module MemprofilerPprof
  class CLI
    # `dump`.
    class Dump < Command
      include SourceOptions

      SUMMARY = "write a profile of a running process to a file"
      USAGE = "[OPTION]... PID|SOCKET|URL"
      DESCRIPTION = <<~TEXT
        Asks a process for a profile, without a signal, and writes it to a file. The process must run the profiler,
        and have a socket (the setting `socket`) or a Rack endpoint, whose URL is given instead. A PID stands for its
        socket; `memprofiler attach PID` starts the profiler in a process that runs without it. The profile has what
        is alive now, and what was allocated since the process wrote its last profile; that takes nothing away from
        the next one.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} tmp/memprofiler.sock
        %{me} --seconds 30 -o now.pprof tmp/memprofiler.sock
        %{me} -o - http://127.0.0.1:3000/debug/pprof | go tool pprof -top -
      TEXT
      # Not the pattern of a process's own files, whose number and age the process limits.
      PATTERN = "tmp/profiles/dump-%{pid}-%{isotime}.pprof"
      private_constant :PATTERN

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      def call(arguments)
        require "ruby_memprofiler_pprof"
        check_output(@output, PATTERN)
        with_source(arguments) do |source|
          bytes = source.read(@seconds)
          write(bytes, source.parse(bytes))
        end
        0
      end

      private

      # The address and options may come in any order.
      def parse(arguments)
        parser.permute!(arguments)
      end

      def define_options(parser)
        parser.on("-o", "--output FILE", "where to write; - is stdout",
                  "(default: #{PATTERN})") { |file| @output = file }
        parser.on("--seconds N", Integer, "count allocations during the next N seconds, 1 to #{LONGEST_INTERVAL}",
                  "(default: those since the last profile)") { |seconds| @seconds = check(seconds, LONGEST_INTERVAL) }
        define_header(parser)
      end

      def write(bytes, profile)
        return write_output(bytes, @output) if @output

        require "ruby_memprofiler_pprof/report"
        path = FilePattern.new(PATTERN).expand(pid: MemprofilerPprof::Report::Totals.new(profile)["pid"])
        puts AtomicFile.create(path, bytes)
      rescue SystemCallError => e
        raise Failure, "#{path}: #{system_message(e)}"
      end
    end
  end
end
