# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/merging"
require "ruby_memprofiler_pprof/cli/profile_command"

module MemprofilerPprof
  class CLI
    # `flamegraph`.
    class Flamegraph < ProfileCommand
      include Merging

      SUMMARY = "write a flame graph of profiles, as an HTML file"
      USAGE = "[OPTION]... [FILE]..."
      DESCRIPTION = <<~TEXT
        Writes one HTML file with a flame graph of profiles, which works in any browser and loads nothing else. Several
        profiles are a series, with a slider for the time; --base colours what has grown. A FILE can also be a directory,
        or - for stdin; without any it is the newest profile in tmp/profiles.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} --open
        %{me} heap.pprof
        %{me} --base monday.pprof friday.pprof -o growth.html
        %{me} --focus '^Sidekiq' --tag class=String tmp/profiles
      TEXT
      # Whether --app is the default.
      APP = false

      private

      # Has only the filters of the options that the other commands share.
      def define_options(parser)
        # Loaded only here, since the overview of all commands does not need it.
        require "ruby_memprofiler_pprof"
        require "ruby_memprofiler_pprof/flamegraph"
        define_output(parser)
        parser.on("--base FILE", "show what has grown since this profile") { |file| @base = file }
        parser.on("--merge", "add the profiles up, as for several workers") { @merge = true }
        parser.on("--value NAME", "the value to show first, such as retained_objects",
                  "(default: the profile's, retained_size)") { |value| @value = value }
        groupings = MemprofilerPprof::Flamegraph::GROUPINGS
        parser.on("--by GROUP", groupings, "what a box is: #{list(groupings)} (default: method)") { |by| @by = by }
        parser.on("--min PERCENT", Float, "combine boxes below this share of the total into",
                  "(other) (default: 0.02)") { |percent| @min = part(percent) }
        define_filters(parser)
      end

      def define_output(parser)
        parser.on("-o", "--output FILE", "where to write; - is stdout (default: the first",
                  "profile's name with .html, in this directory)") { |file| @output = file }
        parser.on("--open", "open it in the browser: $BROWSER, or the system's own") { @open = true }
        parser.on("--title TEXT", "the page's title (default: the profiles' names)") { |text| @title = text }
      end

      def part(percent)
        return percent / 100 if (0..100).cover?(percent)

        raise OptionParser::InvalidArgument, "#{percent}, must be in 0..100"
      end

      def show(files)
        raise Failure, "no profiles found, see #{@invocation} --help" if files.empty?

        output = @output || derived_name(files.first, ".html")
        raise Failure, "--open needs a file, not stdout" if @open && output == "-"

        write_output(page(files), output)
        open_page(output) if @open
        0
      end

      def page(files)
        readable = []
        profiles = alike(read_each(files) { |profile| filter(profile) }).map do |file, profile|
          readable << file
          profile
        end
        profiles = @merge ? [merge(readable, profiles)] : profiles.to_a
        names = readable.map { |file| File.basename(name(file)) }
        title = @title || title(names)
        options = { type: @value, by: @by, min: @min, names: @merge ? [title] : names }.compact
        options.update(base: filter(load(@base)), base_name: name(@base)) if @base
        MemprofilerPprof::Flamegraph.new(profiles, title: title, **options).to_html
      end

      def title(names)
        all = names.size > 1 ? "#{names.first} to #{names.last}" : names.first
        @base ? "#{all} compared with #{File.basename(name(@base))}" : all
      end

      def open_page(file)
        require "ruby_memprofiler_pprof/cli/browser"
        $stdout.flush
        Browser.open(file)
      end
    end
  end
end
