# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/formatted"
require "ruby_memprofiler_pprof/cli/profile_command"
require "ruby_memprofiler_pprof/cli/source_options"

module MemprofilerPprof
  class CLI
    # `why`.
    class Why < ProfileCommand
      include Formatted
      include SourceOptions

      SUMMARY = "show who holds the objects that are alive"
      USAGE = "[OPTION]... [PID|SOCKET|DIRECTORY|URL|FILE]"
      DESCRIPTION = <<~TEXT
        Shows which constants, variables, threads and so on hold what each line has allocated. Asks a running process,
        which must run the profiler, and have a socket (the setting `socket`) or a Rack endpoint, whose URL is given
        instead. A PID stands for its socket; `memprofiler attach PID` starts the profiler in a process that runs
        without it. The program pauses for a few milliseconds, since its heap is read in a copy of the process. A
        DIRECTORY of sockets stands for all their processes.

        A FILE is what --output or the setting `retainers_every` has written: it has the paths of references, but not what
        each holder retains. Without an argument it is the newest such file in tmp/profiles.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} tmp/memprofiler.sock
        %{me} --site app/models/cart.rb:11 tmp/memprofiler.sock
        %{me} --class Cart --output cart.pprof http://127.0.0.1:3000/debug/pprof
        %{me} cart.pprof
      TEXT
      # How many sites are shown by default.
      LIMIT = 10

      private

      def define_options(parser)
        # Loaded only here, since the overview of all commands does not need it.
        require "ruby_memprofiler_pprof/report"
        require "ruby_memprofiler_pprof/cli/retainers_sources"
        define_question(parser)
        define_format(parser)
        parser.on("--json", "print JSON, with full names and exact numbers") { @format = :json }
        parser.on("-o", "--output FILE", "also write the paths of references, as a profile for",
                  "flamegraph, report and diff; - is stdout, and nothing else") { |file| @output = file }
        define_header(parser)
      end

      def define_question(parser)
        parser.on("--site FILE:LINE", "only what this line has allocated, or this FILE") { |site| @site = site }
        parser.on("--class NAME", "only objects of this class") { |name| @class_name = name }
        parser.on("--limit N", Integer, "show at most N sites (default: #{LIMIT})") do |limit|
          @limit = check(limit, OnDemand::MOST_SITES)
        end
        parser.on("--in-process", "do not copy the process: stop the program meanwhile,",
                  "a second or more") { @in_process = true }
        parser.on("--timeout SECONDS", Integer, "give up after so many, 1 to #{OnDemand::MOST_TIMEOUT}",
                  "(default: #{OnDemand::RETAINERS_TIMEOUT})") do |seconds|
          @timeout = check(seconds, OnDemand::MOST_TIMEOUT)
        end
      end

      # Takes the arguments as they are: they may be addresses.
      def files(arguments)
        raise Failure, "at most one argument is needed, got #{arguments.size}, see #{@invocation} --help" if
          arguments.size > 1

        arguments
      end

      def show(arguments)
        sources = RetainersSources.new(arguments.first || default_directory, @headers || {}) { |file| load(file) }
        found = sources.ask(**{ site: @site, class_name: @class_name, limit: @limit, in_process: @in_process,
                                timeout: @timeout }.compact)
        write(found) if @output
        print_report(found) unless @output == DASH
        0
      end

      def print_report(found)
        sections = found.answers.flat_map do |address, all|
          all.map { |retainers| section(address, retainers) }
        end
        print_document(found.answers.keys, sections, found.notes)
      end

      def section(address, retainers)
        report = MemprofilerPprof::Report::Retainers.new(retainers).section(data: { input: address.scrub })
        report.title = "#{name(address)}: #{report.title}"
        report
      end

      def write(found)
        write_bytes(found.profile, @output)
        tell "wrote #{@output}" unless @output == DASH
      end
    end
  end
end
