# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/by_tag"
require "ruby_memprofiler_pprof/cli/profile_command"

module MemprofilerPprof
  class CLI
    # `leaks`.
    class Leaks < ProfileCommand
      include ByTag

      SUMMARY = "find what keeps growing in a series of profiles"
      USAGE = "[OPTION]... FILE..."
      DESCRIPTION = <<~TEXT
        Shows which lines keep growing in a series of a process's profiles (a leak), which grow ever more slowly or have
        settled (a cache), and how sure that is. Needs 8 profiles, in any order; 20 or more are better. A FILE can also be
        a directory. Each process is looked at by itself.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} tmp/profiles
        %{me} tmp/profiles/mem-4711-*.pprof
        %{me} --by-tag release tmp/profiles
        %{me} --exit-code --json soak/

        Exit status: 0; with --exit-code 1 if something grows; 2 if a file cannot be read, or the command line is wrong.
      TEXT
      # Whether --app is the default.
      APP = true

      private

      def define_options(parser)
        super
        define_by_tag(parser)
        parser.on("--exit-code", "exit with 1 if something grows") { @exit_code = true }
      end

      def show(files)
        raise Failure, "no profiles found, see #{@invocation} --help" if files.empty?

        series, single = snapshots(files).group_by(&:process).values.partition { |snapshots| snapshots.size > 1 }
        raise Failure, "at least two profiles of one process are needed, 8 to find a leak" if series.empty?

        reports = reports(series)
        groups = @by_tag ? by_tag(reports, series.map { |snapshots| snapshots.last.totals.tags }) : { nil => reports }
        show_groups(groups, single.size)
        status(reports)
      end

      def reports(series)
        series.map do |snapshots|
          MemprofilerPprof::Report::Leaks.new(snapshots, by: @by || :line, limit: @limit)
        end
      end

      def status(reports)
        @exit_code && reports.any? { |report| report.growing.any? } ? 1 : 0
      end

      def snapshots(files)
        read_ahead(files) do |file|
          # Without libraries already, with --app: filter does that.
          MemprofilerPprof::Report::Snapshot.new(filter(load(file)), by: @by || :line, libraries: true)
        rescue ProfileError => e
          raise ProfileError, e.message.start_with?(file) ? e.message : "#{file}: #{e.message}"
        end.to_a
      end

      def show_groups(groups, single)
        return print_json(groups.values.flatten.map(&:to_h)) if @json

        texts = groups.flat_map do |value, reports|
          [*(tag_heading(value) if @by_tag), *reports.map { |report| report.to_s(style) }]
        end
        puts texts.join("\n\n")
        puts "", "Processes with only one profile: #{single}" if single.positive?
      end
    end
  end
end
