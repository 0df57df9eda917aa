# frozen_string_literal: true

module MemprofilerPprof
  class Pyroscope
    # What Pyroscope files profiles under: `app{key=value,…}`. There is no way to quote, so that some characters cannot
    # be part of it.
    # @api private
    class Series
      APP_NAME = %r{\A[\w.\-/]+\z}
      KEY = /\A(?!__)[A-Za-z_][\w.]*\z/
      VALUE = /\A[^,={}]+\z/
      private_constant :APP_NAME, :KEY, :VALUE

      # @param app_name [String]
      # @param tags [Hash]
      # @raise [ArgumentError, TypeError]
      def initialize(app_name, tags)
        @app_name = matching("app_name", app_name, APP_NAME, "letters, digits, _, ., - and /")
        raise TypeError, "tags must be a Hash, got #{tags.inspect}" unless tags.is_a?(Hash)

        @tags = tags.to_h do |key, value|
          key = matching("a tag's name", key.to_s, KEY, "letters, digits, _ and ., and not begin with __")
          [key, value.respond_to?(:call) ? value : value_of(key, value)]
        end
      end

      # @return [String]
      # @raise [ArgumentError] when a callable's answer cannot be a value
      def name
        tags = @tags.map { |key, value| "#{key}=#{value.respond_to?(:call) ? value_of(key, value.call) : value}" }
        "#{@app_name}{#{tags.join(",")}}"
      end

      private

      def value_of(key, value)
        matching("the tag #{key}", value.to_s, VALUE, "characters other than , = { }")
      end

      def matching(name, value, pattern, allowed)
        raise TypeError, "#{name} must be a String, got #{value.inspect}" unless value.is_a?(String)
        return value if pattern.match?(value)

        raise ArgumentError, "#{name} must consist of #{allowed}, got #{value.inspect}"
      end
    end
  end
end
