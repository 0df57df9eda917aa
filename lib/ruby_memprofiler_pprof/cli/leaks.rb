# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/by_tag"
require "ruby_memprofiler_pprof/cli/formatted"
require "ruby_memprofiler_pprof/cli/profile_command"
require "ruby_memprofiler_pprof/cli/source_options"

module MemprofilerPprof
  class CLI
    # `leaks`.
    class Leaks < ProfileCommand
      include ByTag
      include Formatted
      include SourceOptions

      SUMMARY = "find what keeps growing in a series of profiles"
      USAGE = "[OPTION]... [FILE]..."
      DESCRIPTION = <<~TEXT
        Shows which lines keep growing in a series of a process's profiles (a leak), which grow ever more slowly or have
        settled (a cache), and how sure that is. Needs 8 profiles, in any order; 20 or more are better. A FILE can also be
        a directory; without any it is tmp/profiles. Each process is looked at by itself.

        With --why, each line that grows is followed by what holds most of its objects: according to the running process if
        its socket, a directory of sockets, or the URL of its Rack endpoint is among the arguments, else as recorded by the
        setting `retainers_every`.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} tmp/profiles
        %{me} tmp/profiles/mem-4711-*.pprof
        %{me} --by-tag release tmp/profiles
        %{me} --why tmp/profiles tmp/memprofiler.sock
        %{me} --exit-code --format json soak/
        %{me} --format markdown --max-bytes 4000 tmp/profiles

        Exit status: 0; with --exit-code 1 if something grows; 2 if a FILE cannot be read, or the command line is wrong.
      TEXT
      # Whether --app is the default, by line and the like.
      APP = true

      private

      def define_options(parser)
        super
        define_format(parser)
        define_by_tag(parser)
        parser.on("--exit-code", "exit with 1 if something grows") { @exit_code = true }
        parser.on("--why", "say what holds the objects of lines that grow") { @why = true }
        define_header(parser)
      end

      # @param arguments [Array<String>] files and, with --why, addresses of processes
      def files(arguments)
        return super unless @why
        raise Failure, "--why needs --by line" unless (@by || :line) == :line

        # Loaded only here, since it is rarely needed.
        require "ruby_memprofiler_pprof/cli/leak_holders"
        addresses, files = arguments.partition { |argument| RetainersSources.live?(argument) || sockets?(argument) }
        @holders = LeakHolders.new(addresses, @headers || {}) { |file| load(file) }
        super(files)
      end

      # Whether it is a directory of sockets, rather than of profiles.
      def sockets?(directory)
        File.directory?(directory) && children(directory).empty? && Top::Directory.new(directory).sockets.any?
      end

      def show(files)
        raise Failure, "no profiles found, see #{@invocation} --help" if files.empty?

        @names = snapshots(files)
        snapshots, others = @names.keys.partition(&:in_series?)
        # Copies of a profile, or one that is named twice.
        snapshots.uniq! { |snapshot| [snapshot.process, snapshot.time] }
        series, single = snapshots.group_by(&:process).values.partition { |some| some.size > 1 }
        raise Failure, "at least two profiles of one process are needed, 8 to find a leak" if series.empty?

        reports = reports(series)
        print_document(@names.values, sections(reports, series), unused(single.size, others.size))
        status(reports)
      end

      def choose(found)
        [found, found.one? ? "the only profile" : "all #{found.size} profiles"]
      end

      def reports(series)
        series.map do |snapshots|
          MemprofilerPprof::Report::Leaks.new(snapshots, by: @by || :line, limit: @limit)
        end
      end

      def status(reports)
        @exit_code && reports.any? { |report| grows?(report) } ? 1 : 0
      end

      # Sites, or memory that belongs to none.
      def grows?(report)
        memory = report.memory_growth
        report.growing.any? || memory.growing.any? || memory.untold?
      end

      # @return [Hash{Snapshot => String}] what is in the files
      def snapshots(files)
        read_each(files) { |profile, file| snapshot(profile, file) }.to_h { |file, snapshot| [snapshot, file] }
      end

      def snapshot(profile, file)
        raise ProfileError, "is a profile of references, see why --help" if RetainersFile.holds?(profile)

        totals = MemprofilerPprof::Report::Totals.new(profile)
        # Without libraries already, with --app: filter does that.
        MemprofilerPprof::Report::Snapshot.new(filter(profile), by: @by || :line, libraries: true, totals: totals)
      rescue ProfileError => e
        raise ProfileError, "#{name(file)}: #{e.message}"
      end

      def sections(reports, series)
        tags = series.map { |snapshots| snapshots.last.totals.tags }
        groups = @by_tag ? by_tag(reports, tags) : { nil => reports }
        snapshots = reports.zip(series).to_h
        groups.flat_map do |value, some|
          ranked(some).map do |report|
            holders = holders(report, snapshots[report])
            report.section(**holders, why: no_match + holders.fetch(:why, []), **group(value))
          end
        end
      end

      # @return [Hash{Symbol => Object}] what {MemprofilerPprof::Report::Leaks#section} takes
      def holders(report, snapshots)
        return {} unless @holders

        newest_first = snapshots.sort_by { |snapshot| -snapshot.time }
        # What was recorded at the exit is of what was left then.
        files = newest_first.reject { |snapshot| snapshot.totals.at_exit? }.map { |snapshot| @names[snapshot] }
        holders, notes = @holders.of(report, running(newest_first.first), files)
        { holders: holders, why: notes }
      end

      # The id of a process; nil if a later one has it, as each process of a container may.
      def running(snapshot)
        pid = snapshot.totals["pid"]
        pid unless @names.each_key.any? do |other|
          other.totals["pid"] == pid && other.process != snapshot.process && other.time > snapshot.time
        end
      end

      # Those with the most serious findings first.
      def ranked(reports)
        verdicts = MemprofilerPprof::Report::Leaks::VERDICTS
        ranks = reports.map do |report|
          grows?(report) ? 0 : verdicts.index(report.findings.first&.verdict) || verdicts.size
        end
        reports.sort_by.with_index { |_, index| [ranks[index], index] }
      end

      def unused(single, others)
        codes = MemprofilerPprof::Report::Codes
        single = ("Processes with only one profile: #{single}" if single.positive?)
        others = ("Sums, and profiles that name no process or lack contents: #{others}" if others.positive?)
        MemprofilerPprof::Report::Note.list(codes::SINGLE_PROFILES => single, codes::NOT_IN_SERIES => others)
      end
    end
  end
end
