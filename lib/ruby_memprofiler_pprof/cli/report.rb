# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/by_tag"
require "ruby_memprofiler_pprof/cli/formatted"
require "ruby_memprofiler_pprof/cli/merging"
require "ruby_memprofiler_pprof/cli/profile_command"

module MemprofilerPprof
  class CLI
    # `report`.
    class Report < ProfileCommand
      include ByTag
      include Formatted
      include Merging

      SUMMARY = "show what retains, or allocates, most"
      USAGE = "[OPTION]... [FILE]..."
      DESCRIPTION = <<~TEXT
        Shows the sites that retain or allocate most or, with --tree, the calls. Several profiles are added up. A FILE can
        also be a directory, or - for stdin; without any it is the newest profile in tmp/profiles. Each figure has its
        95 % interval, which contains the truth 19 times out of 20; a row based on fewer than ten samples says "low
        confidence".
      TEXT
      EXAMPLES = <<~TEXT
        %{me} tmp/profiles/mem-4711-20261231T235959Z.pprof
        %{me} --by class --value allocations heap.pprof
        %{me} --app --tree --focus Cart heap.pprof
        %{me} --app --by-tag release tmp/profiles
      TEXT
      # Whether --app is the default.
      APP = false

      private

      def define_options(parser)
        super
        define_format(parser)
        parser.on("--value NAME", "the value to show, such as retained_objects",
                  "(default: the profile's, retained_size)") { |value| @value = value }
        define_by_tag(parser)
        parser.on("--sort ORDER", Profile::Aggregation::ORDERS, "flat (allocated there itself, the default) or",
                  "cumulative (with everything called from there)") { |sort| @sort = sort }
        parser.on("--tree", "show the calls from the outermost inwards,",
                  "by method unless --by says otherwise") { @tree = true }
        parser.on("--min PERCENT", Float, "leave out calls in the tree below this (default: 1)") do |min|
          @min = check(min, 100, 0) / 100
        end
      end

      def show(files)
        raise Failure, "no profiles found, see #{@invocation} --help" if files.empty?

        check_options
        sections = groups(files).map { |value, some| section(value, *read(some)) }
        print_document(files, sections)
      end

      # @raise [Failure] if an option would change nothing
      def check_options
        raise Failure, "--min needs --tree" if @min && !@tree

        without = { "--limit" => @limit_given, "--sort" => @sort }.compact.keys.first
        raise Failure, "#{without} is not for --tree, which has --min" if without && @tree
      end

      # The files, by the tag's value if that was asked for: then each is read twice, so that few are in memory.
      def groups(files)
        return { nil => files } unless @by_tag

        by_tag(*read_each(files) { |profile| Tags.of(profile.comments) }.to_a.transpose)
      end

      # @return [Array] which files can be read, the totals of each, their times, and what is selected of all of them
      def read(files)
        readable = []
        totals = []
        times = []
        profiles = alike(read_each(files) { |profile| profile }).map do |file, profile|
          readable << file
          totals << MemprofilerPprof::Report::Totals.new(profile)
          times << profile.time
          profile
        end
        @matched = nil
        profile = filter(merge(readable, profiles))
        [readable, totals, times, profile]
      end

      def section(value, files, totals, times, profile)
        notes = [*notes(totals, profile), *no_match]
        view(profile).section(title: title(files, totals, times), notes: notes,
                              **group(value, { inputs: files.map(&:scrub), totals: totals.map(&:to_h) }))
      end

      def notes(totals, profile)
        return totals.first.notes if totals.size == 1

        codes = MemprofilerPprof::Report::Codes
        MemprofilerPprof::Report::Note.list(codes::DIFFERENT_TAGS => several_values(totals),
                                            codes::SAME_PROCESS => (same_process(totals) if alive?(profile)))
      end

      def several_values(totals)
        names = totals.flat_map { |each| each.tags.keys }.uniq
        differing = names.select { |name| totals.map { |each| each.tags[name] }.uniq.size > 1 }
        return if @by_tag || differing.empty?

        "They differ in #{differing.join(", ")}: --by-tag #{differing.first} shows each by itself."
      end

      # Whether what is shown is what was alive, and not what happened in the profile's interval.
      def alive?(profile)
        totals = MemprofilerPprof::Report::Totals
        [*totals::OBJECTS, *totals::BYTES].include?(@value || profile.default_sample_type&.name)
      end

      def same_process(totals)
        processes = totals.filter_map(&:process)
        return if processes.uniq.size == processes.size

        "Several are of the same process: what is alive in each of them is counted each time, and intervals are " \
          "those of different objects. See also leaks."
      end

      def view(profile)
        reports = MemprofilerPprof::Report
        return reports::Tree.new(profile, by: @by || :method, type: @value, min: @min || reports::Tree::MIN) if @tree

        reports::Top.new(profile, by: @by || :line, type: @value, sort: @sort || :flat, limit: @limit)
      end

      def title(files, totals, times)
        times = times.compact.minmax.compact.uniq.map { |time| time.getutc.strftime("%F %T") }
        name = files.size == 1 ? name(files.first) : "#{files.size} profiles"
        shared = totals.map { |each| each.tags.to_a }.reduce(:&).to_h
        [name, *("#{times.join(" to ")} UTC" if times.any?), *(Tags.format(shared) if shared.any?)].join(", ")
      end
    end
  end
end
