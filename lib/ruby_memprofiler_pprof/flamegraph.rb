# frozen_string_literal: true

require "digest"
require "json"
require "ruby_memprofiler_pprof/report"

module MemprofilerPprof
  # A flame graph as one HTML page that needs nothing else: `require "ruby_memprofiler_pprof/flamegraph"`. It shows all
  # sample types; several profiles are a series in time.
  #
  # @example What has grown
  #   old, new = %w[old.pprof new.pprof].map { |path| MemprofilerPprof::Profile.load(path) }
  #   File.write("growth.html", MemprofilerPprof::Flamegraph.new([new], base: old).to_html)
  class Flamegraph
    # What a box can stand for.
    GROUPINGS = %i[method line file].freeze
    # The part of the total below which boxes are shown together, by default.
    MIN = 0.0002
    # The directory of the page's parts; its scripts in the order of their dependencies.
    DIRECTORY = File.join(__dir__, "flamegraph").freeze
    SCRIPTS = %w[format model layout colours view search details state app].freeze
    # Characters by which names could end the script element that the JSON is in, or begin markup.
    UNSAFE = /[<>&\u2028\u2029]/
    private_constant :DIRECTORY, :SCRIPTS, :UNSAFE

    class << self
      # All that the page may do is run its script and use its style: neither load anything nor run what a name says.
      #
      # @return [String] its Content-Security-Policy, which stands in it, too
      # @api private
      def policy
        hashes = [style, script].map { |text| "'sha256-#{Digest::SHA256.base64digest(text)}'" }
        "default-src 'none'; style-src #{hashes[0]}; script-src #{hashes[1]}; base-uri 'none'; form-action 'none'"
      end

      private

      def style
        read("style.css")
      end

      def script
        %("use strict";\n#{SCRIPTS.map { |name| read("#{name}.js") }.join("\n")})
      end

      def template
        read("template.html")
      end

      def read(name)
        File.read(File.join(DIRECTORY, name), encoding: Encoding::UTF_8)
      end
    end

    # @param profiles [Array<Profile>] at least one; they are shown in the order of their times
    # @param base [Profile, nil] what to compare them with
    # @param names [Array<String>, nil] what the profiles are called on the page
    # @param base_name [String]
    # @param title [String]
    # @param type [Symbol, String, Profile::SampleType, nil] the value to show first, by default the first profile's own
    # @param by [Symbol] what a box stands for, one of {GROUPINGS}
    # @param min [Numeric] what has less than this part of the total in every profile is shown as "(other)", 0..1
    # @raise [ArgumentError, TypeError] if an argument is none of what is allowed
    def initialize(profiles, base: nil, names: nil, base_name: "base", title: "Flame graph", type: nil, by: :method,
                   min: MIN)
      check(profiles, base, by, min)
      names ||= profiles.each_index.map { |index| "profile #{index + 1}" }
      raise ArgumentError, "names must be one per profile, got #{names.inspect}" if names.size != profiles.size

      @named = profiles.zip(names).sort_by.with_index { |(profile, _), index| [profile.time || Time.at(0), index] }
      @named.unshift([base, base_name]) if base
      @compares = !base.nil?
      @title = title
      @type = profiles.first.__send__(:column, type)
      @by = by
      @min = min
    end

    # @return [String] the page
    # @raise [ProfileError] naming the profile whose sample types are not those of the first
    def to_html
      style, script, template = %i[style script template].map { |part| self.class.__send__(part) }
      parts = { "style" => style, "script" => script, "data" => json, "policy" => self.class.policy,
                "title" => escape(@title), "generator" => "ruby_memprofiler_pprof #{VERSION}" }
      template.gsub(/%\{(\w+)\}/) { parts.fetch(Regexp.last_match(1)) }
    end

    private

    def check(profiles, base, by, min)
      raise ArgumentError, "profiles must be at least one, got []" if profiles.empty?

      [*profiles, *base].each { |profile| check_profile(profile) }
      Argument.one_of(:by, by, GROUPINGS)
      Argument.check(:min, min, "in 0..1") { min.is_a?(Numeric) && (0..1).cover?(min) }
    end

    def check_profile(profile)
      Profile.__send__(:check, profile)
      return unless profile.difference?

      raise ArgumentError, "a difference has negative values, which have no width: give its profiles, one as the base"
    end

    def json
      about = { title: text(@title), base: @compares, type: @type, profiles: about_profiles, **columns }
      safe("#{JSON.generate(about).delete_suffix("}")},\"tree\":#{tree}}")
    end

    def about_profiles
      profiles = @named.map(&:first)
      follows = [false, *profiles.each_cons(2).map { |old, new| Report::Births.consecutive?(old, new) }]
      @named.zip(follows).map do |(profile, name), follows_it|
        { name: text(name), time: milliseconds(profile.time), process: Report::Totals.new(profile).process&.join(" "),
          follows: follows_it }
      end
    end

    # The columns of values, and which of them bound how many objects can have survived from one profile to another.
    def columns
      types = @named.first.first.sample_types
      objects, allocations = [Report::Totals::OBJECTS, Report::Snapshot::ALLOCATIONS].map do |names|
        types.index { |type| names.include?(type.name) }
      end
      retained = Report::Totals::OBJECTS + Report::Totals::BYTES
      { types: types.map { |type| { name: type.name, unit: type.unit, retained: retained.include?(type.name) } },
        objects: objects, allocations: allocations }
    end

    def tree
      (first, *others) = @named.map(&:first)
      json, (index, reason) = first.__send__(:native_flamegraph, others, @by.name, @min.to_f)
      return json unless reason

      raise ProfileError, "#{@named[index + 1].last} cannot be shown with #{@named[0].last}: #{reason}"
    end

    def milliseconds(time)
      time && (time.to_r * 1000).round
    end

    # File names can have any bytes.
    def text(string)
      string.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
    end

    # In JSON these characters can only be in Strings.
    def safe(json)
      json.gsub(UNSAFE) { |character| format("\\u%04x", character.ord) }
    end

    def escape(string)
      text(string).gsub(/[<>&"']/, "<" => "&lt;", ">" => "&gt;", "&" => "&amp;", '"' => "&quot;", "'" => "&#39;")
    end
  end
end
