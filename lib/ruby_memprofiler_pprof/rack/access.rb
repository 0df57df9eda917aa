# frozen_string_literal: true

module MemprofilerPprof
  module Rack
    # Who may see profiles, which tell the names of classes, methods and files: whom a callable permits. Without one,
    # requests that come straight from this machine to a program in development, and nobody else.
    # @api private
    class Access
      # Puma and rackup call the environment "development" when nobody has said what it is, so that being called so is
      # not enough.
      ENVIRONMENTS = %w[development test].freeze
      VARIABLES = %w[RAILS_ENV RACK_ENV APP_ENV].freeze
      LOOPBACK = /\A(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)\z/
      # With another name for this machine, a page from anywhere could have the user's browser ask (DNS rebinding).
      LOCAL_HOST = /\A(?:(?:[\w-]+\.)*localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?\z/i
      PROXIED = %w[HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_HOST HTTP_FORWARDED HTTP_X_REAL_IP HTTP_VIA].freeze
      private_constant :ENVIRONMENTS, :VARIABLES, :LOOPBACK, :LOCAL_HOST, :PROXIED

      # @param authorize [#call, nil]
      # @raise [TypeError]
      def initialize(authorize)
        unless authorize.nil? || authorize.respond_to?(:call)
          raise TypeError, "authorize must be nil or something to call, got #{authorize.inspect}"
        end

        @authorize = authorize
      end

      # @param env [Hash] of the request
      # @return [Boolean]
      def permit?(env)
        @authorize ? !!@authorize.call(env) : development? && from_here?(env)
      end

      private

      def development?
        names = ENV.values_at(*VARIABLES).reject { |name| name.to_s.empty? }
        names.any? && (names - ENVIRONMENTS).empty?
      end

      def from_here?(env)
        LOOPBACK.match?(env["REMOTE_ADDR"].to_s) && LOCAL_HOST.match?(env["HTTP_HOST"].to_s) &&
          PROXIED.none? { |header| env.key?(header) }
      end
    end
  end
end
