# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/profile_command"

module MemprofilerPprof
  class CLI
    # `report`.
    class Report < ProfileCommand
      SUMMARY = "show what retains, or allocates, most"
      USAGE = "[OPTION]... FILE..."
      DESCRIPTION = <<~TEXT
        Shows the sites that retain or allocate most or, with --tree, the calls. Several profiles are added up. A FILE can
        also be a directory. Each figure has its 95 % interval, which contains the truth 19 times out of 20; a row that
        rests on fewer than ten samples says "low confidence".
      TEXT
      EXAMPLES = <<~TEXT
        %{me} tmp/profiles/mem-4711-20261231T235959Z.pprof
        %{me} --by class --value allocations heap.pprof
        %{me} --app --tree --focus Cart heap.pprof
      TEXT
      # Whether --app is the default.
      APP = false

      private

      def define_options(parser)
        super
        parser.on("--value NAME", "the value to show, such as retained_objects",
                  "(default: the profile's, retained_size)") { |value| @value = value }
        parser.on("--sort ORDER", Profile::Aggregation::ORDERS, "flat (allocated there itself, the default) or",
                  "cumulative (with everything called from there)") { |sort| @sort = sort }
        parser.on("--tree", "show the calls from the outermost inwards,",
                  "by method unless --by says otherwise") { @tree = true }
        parser.on("--min PERCENT", Float, "leave out calls in the tree below this (default: 1)") do |min|
          @min = min / 100
        end
      end

      def show(files)
        raise Failure, "no profile given, see #{@invocation} --help" if files.empty?

        totals = []
        times = []
        profiles = read_ahead(files) { |file| load(file) }.lazy.map do |profile|
          totals << MemprofilerPprof::Report::Totals.new(profile)
          times << profile.time
          profile
        end
        view = view(filter(Profile.merge(profiles)))
        return print_json(files: files, totals: totals.map(&:to_h), report: view.to_h) if @json

        puts heading(files, times), *explanation(totals), view.to_s(style)
      end

      def explanation(totals)
        return totals.first.lines if totals.size == 1
        return if totals.map { |each| [each["pid"], each.started_at] }.uniq.size == totals.size

        "Several are of the same process: what is alive in each of them is counted each time. See also leaks."
      end

      def view(profile)
        reports = MemprofilerPprof::Report
        return reports::Tree.new(profile, by: @by || :method, type: @value, min: @min || reports::Tree::MIN) if @tree

        reports::Top.new(profile, by: @by || :line, type: @value, sort: @sort || :flat, limit: @limit)
      end

      def heading(files, times)
        times = times.compact.minmax.compact.uniq.map { |time| time.getutc.strftime("%F %T") }
        name = files.size == 1 ? files.first : "#{files.size} profiles"
        [name, *("#{times.join(" to ")} UTC" if times.any?)].join(", ")
      end
    end
  end
end
