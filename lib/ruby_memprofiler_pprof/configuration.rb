# frozen_string_literal: true

require "ruby_memprofiler_pprof/file_pattern"

module MemprofilerPprof
  # The settings in the environment, `RUBY_MEMPROFILER_PPROF_*`, as keyword arguments for {Collector} and {FileFlusher}.
  # What is not set, or empty, is left out, so that the defaults are theirs.
  #
  # @example
  #   configuration = MemprofilerPprof::Configuration.from_env
  #   collector = MemprofilerPprof::Collector.new(**configuration.collector_options)
  #   MemprofilerPprof::FileFlusher.new(collector, **configuration.flusher_options).start!
  class Configuration
    # What every variable's name begins with.
    PREFIX = "RUBY_MEMPROFILER_PPROF_"

    # A kind of value: what is allowed, in words, and how text becomes a value (nil if it cannot).
    Type = Struct.new(:allowed, :parser) do
      # @param text [String]
      # @return [Object, nil]
      def parse(text)
        parser.call(text)
      rescue ArgumentError
        nil
      end
    end

    # A variable: its name without the prefix, the keyword that it sets, the kind of value, the default (which is the
    # keyword's; here only to be read by people) and what it is for.
    Setting = Struct.new(:name, :keyword, :type, :default, :purpose) do
      # @return [String] the whole name of the variable
      def variable
        PREFIX + name
      end
    end

    rate = Type.new("a number from 0 to 1", ->(text) { Float(text).then { |value| value if value.between?(0, 1) } })
    seconds = Type.new("a number of seconds above 0",
                       ->(text) { Float(text).then { |value| value if value.positive? && value.finite? } })
    integer = Type.new("an integer", ->(text) { Integer(text, 10) })
    seed = Type.new("an integer from 0", ->(text) { Integer(text, 10).then { |value| value unless value.negative? } })
    count = Type.new("an integer above 0", ->(text) { Integer(text, 10).then { |value| value if value.positive? } })
    booleans = { "true" => true, "1" => true, "yes" => true, "on" => true,
                 "false" => false, "0" => false, "no" => false, "off" => false }
    boolean = Type.new("true or false", ->(text) { booleans[text.downcase] })
    one_of = ->(*names) { Type.new("one of #{names.join(", ")}", ->(text) { text.to_sym if names.include?(text) }) }
    pattern = Type.new("a file name, in which #{FilePattern::KEYS.map { |key| "%{#{key}}" }.join(" ")} are filled in",
                       ->(text) { FilePattern.new(text).to_s })

    methods = one_of.call("cfp", "profile_frames", "backtrace_locations")
    liveness = one_of.call("auto", "freeobj", "mark_bits")
    names = one_of.call("ruby", "go")

    # The variables that set up the collector.
    COLLECTOR_SETTINGS = [
      ["SAMPLE_RATE", :sample_rate, rate, "0.01", "fraction of the allocations that is sampled"],
      ["MAX_HEAP_SAMPLES", :max_heap_samples, count, "50000", "most live samples kept"],
      ["TRACK_ALLOCATIONS", :track_allocations, boolean, "true", "count allocations too, not only live objects"],
      ["BT_METHOD", :bt_method, methods, "cfp", "how stacks are read"],
      ["LIVENESS", :liveness, liveness, "auto", "how the death of an object is noticed"],
      ["MAX_FRAMES", :max_frames, count, "1000", "deeper stacks are truncated"],
      ["MAX_STACK_BYTES", :max_stack_bytes, count, "67108864", "about the most memory for stored stacks"],
      ["OBJECT_CLASS", :object_class, boolean, "true", "label each sample with the object's class"],
      ["OBJECT_AGE", :object_age, boolean, "false", "label each sample with the GCs survived"],
      ["SAMPLE_TYPE_NAMES", :sample_type_names, names, "ruby", "what the values are called"],
      ["PRETTY_BACKTRACES", :pretty_backtraces, boolean, "true", "call methods Foo#bar rather than bar"],
      ["SEED", :seed, seed, "random", "makes the sampling reproducible"]
    ].map { |row| Setting.new(*row).freeze }.freeze

    # The variables that set up the flusher.
    FLUSHER_SETTINGS = [
      ["FILE_PATTERN", :pattern, pattern, "tmp/profiles/mem-%{pid}-%{isotime}.pprof", "where profiles go"],
      ["INTERVAL", :interval, seconds, "30", "time between two profiles"],
      ["PRIORITY", :priority, integer, "0", "of the thread that writes them, -3 to 3"],
      ["YIELD_GVL", :yield_gvl, boolean, "true", "let other threads run while a profile is encoded"],
      ["PROACTIVELY_YIELD_GVL", :proactively_yield_gvl, boolean, "true", "let others run between its slices"]
    ].map { |row| Setting.new(*row).freeze }.freeze

    # @return [Hash{Symbol => Object}] keyword arguments for {Collector#initialize}
    attr_reader :collector_options
    # @return [Hash{Symbol => Object}] keyword arguments for {FileFlusher#initialize}
    attr_reader :flusher_options
    # @return [Array<String>] variables with the prefix that mean nothing, probably misspelt
    attr_reader :unknown

    # @param env [ENV, Hash{String => String}]
    # @return [Configuration]
    # @raise [ArgumentError] naming the variable, its value and what is allowed
    def self.from_env(env = ENV)
      new(env.to_h)
    end

    # @return [Array<Setting>] all variables
    def self.settings
      COLLECTOR_SETTINGS + FLUSHER_SETTINGS
    end

    # @api private
    def initialize(env)
      @collector_options = read(COLLECTOR_SETTINGS, env)
      @flusher_options = read(FLUSHER_SETTINGS, env)
      known = self.class.settings.map(&:variable)
      @unknown = env.keys.select { |name| name.start_with?(PREFIX) } - known
    end

    private

    def read(settings, env)
      settings.each_with_object({}) do |setting, options|
        text = env[setting.variable].to_s.strip
        options[setting.keyword] = value(setting, text) unless text.empty?
      end
    end

    def value(setting, text)
      value = setting.type.parse(text)
      return value unless value.nil?

      raise ArgumentError, "#{setting.variable} must be #{setting.type.allowed}, got #{text.inspect}"
    end
  end
end
