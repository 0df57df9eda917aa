# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/inputs"
require "ruby_memprofiler_pprof/cli/terminal"

module MemprofilerPprof
  class CLI
    # What the commands that read profiles have in common.
    class ProfileCommand < Command
      include Inputs

      # How many sites are shown by default.
      LIMIT = 20
      # What is grouped by, by default.
      BY = :line

      # @param arguments [Array<String>]
      # @return [Integer] the exit status
      def call(arguments)
        show(files(arguments))
      rescue ArgumentError => e
        raise Failure, e.message.sub(/\Atype must/, "--value must")
      rescue ProfileError => e
        raise Failure, e.message
      end

      private

      # Files and options may come in any order.
      def parse(arguments)
        @limit = self.class::LIMIT
        @tags = []
        parser.permute!(arguments)
      end

      def define_options(parser)
        # Loaded only here, since the overview of all commands does not need it.
        require "ruby_memprofiler_pprof/report"
        groupings = Profile::Aggregation::GROUPINGS
        parser.on("--by GROUP", groupings, "#{list(groupings)} (default: #{self.class::BY})") { |by| @by = by }
        parser.on("--limit N", Integer, "show at most N sites (default: #{self.class::LIMIT}; 0 for all)") do |limit|
          @limit = check(limit, 1_000_000, 0).nonzero?
          @limit_given = true
        end
        define_filters(parser)
        parser.on("--json", "print JSON, with full names and exact numbers") { @format = :json }
      end

      def define_filters(parser)
        accept_regexps(parser)
        parser.on("--focus REGEXP", Regexp, "only stacks with a function whose name or file matches") do |pattern|
          @focus = pattern
        end
        parser.on("--ignore REGEXP", Regexp, "only stacks without one") { |pattern| @ignore = pattern }
        parser.on("--tag KEY=VALUE", "only samples with this label, such as class=String",
                  "or KEY=/REGEXP/; may be repeated: all must match") { |tag| add_tag(tag) }
        parser.on("--[no-]app", "count what gems and Ruby allocate for the program's",
                  "line that called them (default: #{app_default})") { |app| @app = app }
      end

      # In place of OptionParser's own, which lets the RegexpError through.
      def accept_regexps(parser)
        parser.accept(Regexp) { |text| regexp(text) || compiled(text, text) }
      end

      # @return [Regexp, nil] what `/REGEXP/` or `/REGEXP/i` stands for; nil if the text is not like that
      def regexp(text)
        pattern, flags = text.match(%r{\A/(.*)/([imx]*)\z}m)&.captures
        pattern && compiled("(?#{flags}:#{pattern})", text)
      end

      def compiled(pattern, text)
        # {CLI.utf8} leaves only what is not valid as bytes, which cannot be matched with the names in a profile.
        raise OptionParser::InvalidArgument, "#{text.inspect}: not UTF-8" if text.encoding == Encoding::BINARY

        Regexp.new(pattern)
      rescue RegexpError => e
        raise OptionParser::InvalidArgument, "#{text}: #{e.message}"
      end

      def app_default
        self.class::APP ? "--app by #{list(MemprofilerPprof::Report::Snapshot::PLACES)}" : "--no-app"
      end

      # By gem or class the default is --no-app: else nearly everything would be of one gem, the program.
      def app?
        return @app unless @app.nil?

        self.class::APP && MemprofilerPprof::Report::Snapshot::PLACES.include?(@by || self.class::BY)
      end

      def add_tag(tag)
        key, value = tag.split("=", 2)
        raise OptionParser::InvalidArgument, "#{tag}, must be KEY=VALUE" if value.nil? || key.empty?

        @tags << { key.to_sym => regexp(value) || ->(label) { label.to_s == value } }
      end

      def filter(profile)
        profile = narrow(profile)
        app? ? profile.without_libraries : profile
      end

      # @return [Array<Note>] that --focus, --ignore and --tag have selected nothing so far, which may be a slip
      def no_match
        text = "No sample matches." if (@focus || @ignore || @tags.any?) && !@matched
        MemprofilerPprof::Report::Note.list(MemprofilerPprof::Report::Codes::NO_MATCH => text)
      end

      # The samples that --focus, --ignore and --tag select, unchanged.
      def narrow(profile)
        profile = profile.focus(@focus) if @focus
        profile = profile.ignore(@ignore) if @ignore
        @tags.reduce(profile) { |rest, tag| rest.tag(**tag) }.tap do |selected|
          @matched ||= selected.samples.first
        end
      end

      def style
        @style ||= Terminal.style
      end
    end
  end
end
