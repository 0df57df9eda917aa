# frozen_string_literal: true

require "ruby_memprofiler_pprof/tags"

module MemprofilerPprof
  class Pyroscope
    # The name of Pyroscope's time series: `app{key=value,…}`. There is no quoting, so some characters are not allowed.
    # @api private
    class Series
      APP_NAME = %r{\A[\w.\-/]+\z}
      private_constant :APP_NAME

      # @param app_name [String]
      # @param tags [Hash]
      # @raise [ArgumentError, TypeError]
      def initialize(app_name, tags)
        @app_name = matching("app_name", app_name, APP_NAME, "letters, digits, _, ., - and /")
        Argument.check(:tags, tags, "a Hash", TypeError) { tags.is_a?(Hash) }

        @tags = tags.to_h do |key, value|
          key = matching("a tag's name", key.to_s, Tags::NAME, "letters, digits, _ and ., and not begin with __")
          [key, value.respond_to?(:call) ? value : value_of(key, value)]
        end
      end

      # @return [String]
      # @raise [ArgumentError] when what a callable returns cannot be a value
      def name
        tags = @tags.map { |key, value| "#{key}=#{value.respond_to?(:call) ? value_of(key, value.call) : value}" }
        "#{@app_name}{#{tags.join(",")}}"
      end

      private

      def value_of(key, value)
        matching("the tag #{key}", value.to_s, Tags::VALUE, "characters other than , = { }")
      end

      def matching(name, value, pattern, allowed)
        Argument.check(name, value, "a String", TypeError) { value.is_a?(String) }
        return value if pattern.match?(value)

        raise ArgumentError, "#{name} must consist of #{allowed}, got #{value.inspect}"
      end
    end
  end
end
