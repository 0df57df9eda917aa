# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid"

module MemprofilerPprof
  class CLI
    # `stack`.
    class Stack < Command
      SUMMARY = "show what the threads of a running process do"
      USAGE = "[OPTION]... PID|CORE"
      DESCRIPTION = <<~TEXT
        Prints the Ruby stack of each thread of a process, innermost call first, which thread has the GVL, and what the others
        do. With --watch, reads the stacks again and again, and writes a profile of where the time goes. The process needs no
        profiler: its memory is read from outside, and it goes on meanwhile. Also reads what a crash has left, a core file.
        Linux on x86_64 only.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} 1234
        sudo %{me} --pause 1234
        %{me} --watch --seconds 30 -o wall.pprof 1234
        %{me} core.1234
      TEXT
      # Apart from those of the heap and of CPU time, since commands take a directory for files of one kind.
      PATTERN = "tmp/profiles/wall/stack-%{pid}-%{isotime}.pprof"
      SECONDS = 10
      RATE = 100
      # The bounds of both.
      LEAST = 0.001
      MOST = 1_000_000
      private_constant :PATTERN, :SECONDS, :RATE, :LEAST, :MOST

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      def call(arguments)
        source, *rest = arguments
        raise Failure, "no process given, see #{@invocation} --help" unless source

        expect_none(rest)
        check_options(source)
        @watch ? watch(source) : print_stacks(source)
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
        parser.on("--watch", "write a profile of wall time; Ctrl-C or TERM ends it early") { @watch = true }
        define_times(parser)
        parser.on("-o", "--output FILE", "with --watch: where to write; - is stdout", "(default: #{PATTERN})") do |file|
          @output = file
        end
      end

      def define_times(parser)
        parser.on("--seconds N", Float, "with --watch: for how long (default: #{SECONDS})") do |value|
          @seconds = check(value, MOST, LEAST)
        end
        parser.on("--rate N", Float, "with --watch: how often per second (default: #{RATE})") do |value|
          @rate = check(value, MOST, LEAST)
        end
      end

      def process?(source)
        source.match?(/\A\d+\z/)
      end

      def check_options(source)
        only = { "--seconds" => @seconds, "--rate" => @rate, "--output" => @output }.compact.keys.first
        raise Failure, "#{only} needs --watch" if only && !@watch
        raise Failure, "--json is not for --watch, which writes a profile" if @json && @watch
        return if process?(source)

        live = { "--watch" => @watch, "--pause" => @pause }.compact.keys.first
        raise Failure, "#{live} needs a PID, not #{source}" if live
      end

      def print_stacks(source)
        kind = process?(source) ? "stack" : "core"
        puts ByPid.run(kind, source, *("pause" if @pause), *("json" if @json))
      end

      def watch(pid)
        check_output(@output, PATTERN)
        bytes = read_often(pid)
        return write_output(bytes, @output) if @output

        require "ruby_memprofiler_pprof/atomic_file"
        require "ruby_memprofiler_pprof/file_pattern"
        puts AtomicFile.create(FilePattern.new(PATTERN).expand(pid: Integer(pid)), bytes)
      rescue SystemCallError => e
        raise Failure, system_message(e)
      end

      # @return [String] a profile of the time until the end, or a signal, upon which the tool ends with what it has
      def read_often(pid)
        signals = Queue.new
        previous = %w[INT TERM].to_h { |signal| [signal, trap(signal) { signals << signal }] }
        ByPid.run("watch", pid, @seconds || SECONDS, @rate || RATE, *("pause" if @pause)) do |tool|
          Thread.new { pass_on(signals.pop, tool) }
        end
      ensure
        previous&.each { |signal, handler| trap(signal, handler) }
      end

      def pass_on(signal, tool)
        Process.kill(signal, tool.pid)
      rescue Errno::ESRCH
        # It has just ended by itself.
        nil
      end
    end
  end
end
