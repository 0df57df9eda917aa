# frozen_string_literal: true

module MemprofilerPprof
  class Pyroscope
    # What the settings `pyroscope_…` stand for: an uploader that is made for the first profile. Before, nothing is
    # loaded: `net/http` is made of gems, and Bundler, which comes after the profiler, may want other versions of them.
    # @api private
    class Deferred
      # @return [Hash{Symbol => Object}] keyword arguments of {Pyroscope#initialize}
      attr_reader :options

      # @param config [Configuration]
      # @return [Hash{Symbol => Object}, nil] nil if there is no `pyroscope_url`
      # @raise [ArgumentError] if settings that belong together are incomplete
      def self.options(config)
        return unless config.pyroscope_url
        raise ArgumentError, "pyroscope_app_name must be set if pyroscope_url is" unless config.pyroscope_app_name

        if config.pyroscope_basic_auth && config.pyroscope_auth_token
          raise ArgumentError, "pyroscope_auth_token and pyroscope_basic_auth exclude each other"
        end

        { url: config.pyroscope_url, app_name: config.pyroscope_app_name, tags: config.tags || {},
          auth_token: config.pyroscope_auth_token, basic_auth: config.pyroscope_basic_auth&.split(":", 2),
          tenant_id: config.pyroscope_tenant_id }
      end

      # @param options [Hash{Symbol => Object}]
      # @param logger [#error, #warn, #info]
      def initialize(options, logger)
        @options = options
        @logger = logger
      end

      # @param tags [Hash] as for {Pyroscope#tags=}
      # @return [void]
      def tags=(tags)
        @options = { **@options, tags: tags }
        @pyroscope&.tags = tags
      end

      # Lets the uploader's thread end when everything is sent, because another one takes its place.
      # @return [void]
      def retire
        @retired = true
        @pyroscope&.retire
      end

      # @param profile [ProfileData]
      # @return [void]
      # @raise [ArgumentError] if an option is wrong in a way that only {Pyroscope#initialize} notices
      def call(profile)
        @pyroscope ||= begin
          require "ruby_memprofiler_pprof/pyroscope"
          Pyroscope.new(**@options, logger: @logger)
        end
        @pyroscope.call(profile)
        # A profile that was begun before may come late.
        @pyroscope.retire if @retired
      end
    end
  end
end
