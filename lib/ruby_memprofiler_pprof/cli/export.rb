# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/merging"
require "ruby_memprofiler_pprof/cli/profile_command"

module MemprofilerPprof
  class CLI
    # `export`.
    class Export < ProfileCommand
      include Merging

      SUMMARY = "write profiles in the format of another tool"
      USAGE = "[OPTION]... [FILE]..."
      DESCRIPTION = <<~TEXT
        Writes a profile for another tool: as JSON for https://www.speedscope.app, as folded stacks for flamegraph.pl and the
        like, or as pprof again. Several profiles are added up. A FILE can also be a directory, or - for stdin; without any
        it is the newest profile in tmp/profiles.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} heap.pprof
        %{me} --format folded --value retained_objects -o - heap.pprof | flamegraph.pl >heap.svg
        %{me} --format pprof --focus '^Sidekiq' -o jobs.pprof tmp/profiles
      TEXT
      # Whether --app is the default.
      APP = false
      # What the names of files end with.
      EXTENSIONS = { speedscope: ".speedscope.json", folded: ".folded" }.freeze
      private_constant :EXTENSIONS

      private

      # Has only the filters of the options that the other commands share.
      def define_options(parser)
        # Loaded only here, since the overview of all commands does not need it.
        require "ruby_memprofiler_pprof"
        @format = :speedscope
        formats = Profile::FORMATS
        parser.on("--format FORMAT", formats, "#{list(formats)} (default: #{@format})") { |format| @format = format }
        parser.on("-o", "--output FILE", "where to write; - is stdout (default: the first",
                  "profile's name with #{list(EXTENSIONS.values)},",
                  "in this directory)") { |file| @output = file }
        parser.on("--value NAME", "the value in folded stacks, such as retained_objects",
                  "(default: the profile's, retained_size)") { |value| @value = value }
        define_filters(parser)
      end

      # @raise [Failure] if the options do not go together
      def parse(arguments)
        super
        return if @help
        raise Failure, "--value needs --format folded" if @value && @format != :folded
        raise Failure, "--format #{@format} needs --output" unless @output || EXTENSIONS.key?(@format)
      end

      def show(files)
        raise Failure, "no profiles found, see #{@invocation} --help" if files.empty?

        output = @output || derived_name(files.first, EXTENSIONS.fetch(@format))
        check_output(output)
        write_output(encode(*read(files)), output)
        0
      end

      # @return [Array(Array<String>, Profile)] which files can be read, and the sum of what is selected of them
      def read(files)
        readable = []
        profiles = alike(read_each(files) { |profile| filter(profile) }).map do |file, profile|
          readable << file
          profile
        end
        profile = merge(readable, profiles)
        tell "there is no sample to write" if profile.top(limit: 1).empty?
        [readable, profile]
      end

      def encode(files, profile)
        case @format
        when :pprof then profile.to_pprof
        when :folded then profile.to_folded(type: @value)
        when :speedscope
          profile.to_speedscope(name: files.one? ? File.basename(name(files.first)) : "#{files.size} profiles")
        end
      end
    end
  end
end
