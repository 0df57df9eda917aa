# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/formatted"
require "ruby_memprofiler_pprof/cli/profile_command"
require "ruby_memprofiler_pprof/cli/source_options"

module MemprofilerPprof
  class CLI
    # `memory`.
    class Memory < ProfileCommand
      include Formatted
      include SourceOptions

      SUMMARY = "show where all of a process's memory is"
      USAGE = "[OPTION]... [PID|SOCKET|DIRECTORY|URL|FILE]..."
      DESCRIPTION = <<~TEXT
        Shows where the resident memory of a process is: objects, free slots, what malloc keeps, code, libraries and
        so on, in lines that add up to all of it, and what to do about what is large. Asks a running process, which
        must run the profiler, and have a socket (the setting `socket`) or a Rack endpoint, whose URL is given
        instead. A PID stands for its socket; `memprofiler attach PID` starts the profiler in a process that runs
        without it. A DIRECTORY of sockets stands for all their processes: a table shows which memory they share, and
        what copy-on-write has cost.

        A FILE is a profile, each of which says where the memory was when it was taken. Without an argument it is the newest
        in tmp/profiles.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} tmp/memprofiler.sock
        %{me} --quick --format json http://127.0.0.1:3000/debug/pprof
        %{me} tmp/sockets
        %{me} tmp/profiles/mem-4711-20261231T235959Z.pprof
      TEXT

      private

      def define_options(parser)
        # Loaded only here, since the overview of all commands does not need it.
        require "ruby_memprofiler_pprof/report"
        require "ruby_memprofiler_pprof/cli/memory_sources"
        parser.on("--quick", "do not walk over the heap of a process, which takes",
                  "some milliseconds for each 10,000 objects") { @quick = true }
        define_format(parser)
        parser.on("--json", "print JSON, with full names and exact numbers") { @format = :json }
        define_header(parser)
      end

      # Takes the arguments as they are: they may be addresses.
      def files(arguments)
        arguments.empty? ? [default_directory] : arguments
      end

      def show(arguments)
        answers, notes = MemorySources.new(arguments, @headers || {}) { |file| load(file) }.ask(full: !@quick)
        print_document(answers.keys, [section(answers)], notes)
        0
      end

      # @return [MemprofilerPprof::Report::Section] of one process, or of several side by side
      def section(answers)
        sources, memories = answers.flat_map { |source, all| all.map { |memory| [source, memory] } }.transpose
        names = sources.map { |source| name(source) }
        addresses = sources.map { |source| source if MemorySources.live?(source) }
        return MemprofilerPprof::Report::Workers.new(memories, names, addresses:).section if memories.size > 1

        section = MemprofilerPprof::Report::Memory.new(memories.first).section(data: { input: names.first.scrub })
        section.title = "#{names.first}: #{section.title}"
        section
      end
    end
  end
end
