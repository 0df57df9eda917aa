# frozen_string_literal: true

require "ruby_memprofiler_pprof/configuration/settings"
require "ruby_memprofiler_pprof/utf8"

module MemprofilerPprof
  # The settings of this process, from all sources. If a setting comes from several, the first of these wins:
  #
  # 1. an argument of {MemprofilerPprof.start}, {MemprofilerPprof.flush} or {MemprofilerPprof.profile}
  # 2. the environment, `RUBY_MEMPROFILER_PPROF_*`, which is also where the command line puts its options: whoever runs
  #    the program can override it
  # 3. {MemprofilerPprof.configure}
  # 4. a framework's integration (Rails' `config.memprofiler_pprof`)
  # 5. the default
  #
  # Each setting has a reader, and inside {MemprofilerPprof.configure} a writer; elsewhere a configuration is frozen.
  #
  # @example
  #   configuration = MemprofilerPprof::Configuration.from_env
  #   collector = MemprofilerPprof::Collector.new(**configuration.collector_options)
  #   MemprofilerPprof::FileFlusher.new(collector, **configuration.flusher_options).start!
  class Configuration
    # Where a setting can come from, most important first.
    SOURCES = %i[argument environment configure framework].freeze

    # Variables that other parts of the gem read: {RSpec.rank_examples}.
    ELSEWHERE = ["#{PREFIX}RANK_EXAMPLES"].freeze
    private_constant :ELSEWHERE

    # @return [Array<String>] variables with the prefix that are no settings, probably misspelt
    attr_reader :unknown
    # @return [Hash{Symbol => Object}] what was assigned to this copy
    # @api private
    attr_reader :assigned

    # @param env [ENV, Hash{String => String}]
    # @return [Configuration]
    # @raise [ArgumentError] naming the variable, its value and what is allowed
    def self.from_env(env = ENV)
      new(env.to_h).freeze
    end

    # @return [Setting, nil]
    # @api private
    def self.find(keyword)
      settings.find { |setting| setting.keyword == keyword }
    end

    # @param word [String]
    # @param words [Array<String>]
    # @return [String] " (did you mean …?)" with one of those words, or nothing
    # @api private
    def self.suggestion(word, words)
      # "rate" means sample_rate; "file_pattern", as the C gem has it, pattern.
      found = words.find { |other| [other, word].map(&:downcase).permutation.any? { |a, b| a.end_with?("_#{b}") } }
      # Ruby loads did_you_mean when it starts, by default; requiring it here would activate a gem. Where it is not
      # installed, its module exists nevertheless.
      if defined?(DidYouMean::SpellChecker)
        found ||= DidYouMean::SpellChecker.new(dictionary: words).correct(word).first
      end
      found ? " (did you mean #{found}?)" : ""
    end

    # @param variable [String] one of {#unknown}
    # @return [String] as {suggestion}
    # @api private
    def self.suggestion_for(variable)
      suggestion(variable.delete_prefix(PREFIX), settings.filter_map(&:name))
    end

    # @api private
    def initialize(env = {})
      @values = SOURCES.to_h { |source| [source, {}] }.merge(environment: read(env))
      known = self.class.settings.filter_map(&:variable) + ELSEWHERE
      @unknown = env.keys.select { |name| name.start_with?(PREFIX) } - known
      @assigned = {}
    end

    settings.each do |setting|
      class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
        def #{setting.keyword} = self[:#{setting.keyword}]       # def sample_rate = self[:sample_rate]
        def #{setting.keyword}=(value)                           # def sample_rate=(value)
          assign(:#{setting.keyword}, value)                     #   assign(:sample_rate, value)
        end                                                      # end
      RUBY
    end

    # @param keyword [Symbol] the name of a setting
    # @return [Object] the value in force
    # @raise [ArgumentError] if there is no such setting
    def [](keyword)
      source = source(keyword)
      source == :default ? self.class.find(keyword).default_value : @values[source][keyword]
    end

    # @param keyword [Symbol] the name of a setting
    # @return [Symbol] where its value comes from: one of {SOURCES}, or :default
    # @raise [ArgumentError] if there is no such setting
    def source(keyword)
      unknown!(keyword) unless self.class.find(keyword)
      SOURCES.find { |source| @values[source].key?(keyword) } || :default
    end

    # @return [Hash{Symbol => Object}] keyword arguments for {Collector#initialize}, without those left at their default
    def collector_options
      options(COLLECTOR_SETTINGS)
    end

    # @return [Hash{Symbol => Object}] keyword arguments for {Collector#flush}, likewise
    def flush_options
      options(FLUSH_SETTINGS)
    end

    # @return [Hash{Symbol => Object}] keyword arguments for {FileFlusher#initialize}, likewise
    def flusher_options
      options(FLUSH_SETTINGS + FLUSHER_SETTINGS)
    end

    # @param by_default [Boolean] whether to write files if no setting says where profiles go
    # @return [Boolean] whether profiles go to files: as `files` says; otherwise if there is a pattern; otherwise by
    #   default, unless they go elsewhere
    # @api private
    def writes_files?(by_default: true)
      return files unless files.nil?

      source(:pattern) != :default || (by_default && !on_flush && !pyroscope_url)
    end

    # @return [Hash{Symbol => Object}] every setting with its value
    def to_h
      self.class.settings.to_h { |setting| [setting.keyword, self[setting.keyword]] }
    end

    # A configuration with further settings from one source.
    # @param source [Symbol] one of {SOURCES}
    # @param settings [Hash{Symbol => Object}] nil removes a setting from this source
    # @return [Configuration]
    # @api private
    def merge(source, settings)
      checked = settings.to_h { |keyword, value| [keyword, check(keyword, value)] }
      dup.replace(source, @values[source].merge(checked).compact).freeze
    end

    # @return [Configuration] one without any settings from that source
    # @api private
    def without(source)
      dup.replace(source, {}).freeze
    end

    # @return [String] the settings that differ from the defaults, for people
    def inspect
      settings = self.class.settings.reject { |setting| source(setting.keyword) == :default }
      pairs = settings.map { |setting| "#{setting.keyword}=#{setting.type.show(self[setting.keyword])}" }
      "#<#{[self.class, *pairs].join(" ")}>"
    end

    protected

    def replace(source, settings)
      @values = @values.merge(source => settings.freeze).freeze
      @assigned = {}.freeze
      self
    end

    private

    def initialize_copy(_)
      @assigned = {}
    end

    def assign(keyword, value)
      raise FrozenError.new("set #{keyword} in a block of MemprofilerPprof.configure", receiver: self) if frozen?

      value = check(keyword, value)
      @assigned[keyword] = value
      @values = @values.merge(configure: @values[:configure].merge(keyword => value).compact)
    end

    def check(keyword, value)
      setting = self.class.find(keyword) || unknown!(keyword)
      return if value.nil?

      checked = setting.type.cast(value)
      raise ArgumentError, "#{keyword} must be #{setting.type.allowed}, got #{setting.type.show(value)}" if checked.nil?

      checked
    end

    def options(settings)
      set = settings.map(&:keyword).reject { |keyword| source(keyword) == :default }
      set.to_h { |keyword| [keyword, self[keyword]] }
    end

    def read(env)
      self.class.settings.each_with_object({}) do |setting, values|
        text = setting.variable ? UTF8.text(env[setting.variable].to_s) : ""
        text = text.strip if text.valid_encoding?
        values[setting.keyword] = parse(setting, text) unless text.empty?
      end
    end

    def parse(setting, text)
      value = setting.type.parse(text)
      return value unless value.nil?

      raise ArgumentError, "#{setting.variable} must be #{setting.type.allowed}, got #{setting.type.show(text)}"
    end

    def unknown!(keyword)
      names = self.class.settings.map { |setting| setting.keyword.to_s }
      suggestion = self.class.suggestion(keyword.to_s, names)
      raise ArgumentError, "there is no setting #{keyword}#{suggestion}; settings are #{names.join(", ")}"
    end
  end
end
