# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"

module MemprofilerPprof
  module Rack
    # Who may see profiles, which contain the names of classes, methods and files. A callable decides. Without one, only
    # requests that come from this machine, through no proxy, to a program in development are permitted.
    # @api private
    class Access
      # These names are not enough to permit a request: Puma and rackup set RACK_ENV to "development" if it was not
      # set.
      ENVIRONMENTS = %w[development test].freeze
      VARIABLES = %w[RAILS_ENV RACK_ENV APP_ENV].freeze
      LOOPBACK = /\A(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)\z/
      # Other host names are refused even if they resolve to this machine, against DNS rebinding: otherwise a page from
      # anywhere could read profiles through the user's browser.
      LOCAL_HOST = /\A(?:(?:[\w-]+\.)*localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?\z/i
      # What proxies, load balancers and content delivery networks add.
      PROXIED = /\AHTTP_(?:X_(?:(?:FORWARDED|ORIGINAL|ENVOY|AMZN|AZURE)_|(?:CLUSTER_CLIENT|CLIENT|REAL)_IP\z)|
                          (?:CF|FASTLY)_|(?:TRUE|FLY)_CLIENT_IP\z|FORWARDED\z|VIA\z)/x
      # The values of Sec-Fetch-Site of requests that no page of another site makes.
      OWN_SITES = [nil, "none", "same-origin"].freeze
      REFUSED = "Not permitted: authorize refused this request. If it asks for a header, such as a token, send that " \
                "(memprofiler's option --header, curl's -H)."
      NOT_LOCAL = "Not permitted. Pass authorize: ->(env) { … } (in Rails, set endpoint_authorize) to say who is. " \
                  "Without it, only requests from this machine are, in development (RAILS_ENV, RACK_ENV, APP_ENV)."
      private_constant :ENVIRONMENTS, :VARIABLES, :LOOPBACK, :LOCAL_HOST, :PROXIED, :OWN_SITES, :REFUSED, :NOT_LOCAL

      # @return [Boolean] whether this is a program in development, to which requests are permitted without a callable
      def self.development?
        names = ENV.values_at(*VARIABLES).reject { |name| name.to_s.empty? }
        names.any? && (names - ENVIRONMENTS).empty?
      end

      # @param authorize [#call, nil]
      # @raise [TypeError]
      def initialize(authorize)
        @authorize = Argument.check(:authorize, authorize, "nil or something to call", TypeError) do
          authorize.nil? || authorize.respond_to?(:call)
        end
      end

      # @param env [Hash] of the request
      # @return [Boolean]
      def permit?(env)
        @authorize ? !!@authorize.call(env) : Access.development? && obstacle(env).nil?
      end

      # @param env [Hash] of a request that is not permitted
      # @return [String] what is said of it
      def refusal(env)
        return REFUSED if @authorize

        [NOT_LOCAL, (obstacle(env) if Access.development?)].compact.join(" ")
      end

      private

      # @return [String, nil] what keeps a request from being permitted in development
      def obstacle(env)
        return "This one comes from another machine." unless LOOPBACK.match?(env["REMOTE_ADDR"].to_s)
        return "The Host header must be localhost, 127.0.0.1 or [::1]." unless LOCAL_HOST.match?(env["HTTP_HOST"].to_s)
        return "A proxy has added #{shown(env.keys.grep(PROXIED).first)}." if env.each_key.any?(PROXIED)

        "A page of another site or port has sent this one: type the address in instead." unless from_own_page?(env)
      end

      # @param name [String] of a header, as Rack has it
      def shown(name)
        name.delete_prefix("HTTP_").split("_").map(&:capitalize).join("-")
      end

      # Whether it is not a foreign page that has the user's browser send the request.
      def from_own_page?(env)
        # Any bytes.
        origin, host = env.values_at("HTTP_ORIGIN", "HTTP_HOST").map { |text| text&.b }
        OWN_SITES.include?(env["HTTP_SEC_FETCH_SITE"]) &&
          (origin.nil? || origin.sub(%r{\Ahttps?://}, "").casecmp?(host))
      end
    end
  end
end
