# frozen_string_literal: true

require "net/http"
require "ruby_memprofiler_pprof/cli/source"

module MemprofilerPprof
  class CLI
    # A `Rack::Endpoint`.
    class Endpoint < Source
      def initialize(address, headers)
        super()
        # Not Unavailable, whose message would have the address before it.
        raise Failure, "give user and password by --header 'Authorization: …', not in a URL" if
          address.match?(%r{//[^/]*@})

        @uri = URI.parse(address)
        @headers = headers
        raise Unavailable, "the URL names no host" if @uri.hostname.to_s.empty?
      rescue URI::Error
        raise Unavailable, "not a valid URL"
      end

      private

      def misfit(*)
        "this is no profile; the URL must be that of the endpoint, such as http://127.0.0.1:3000/debug/pprof"
      end

      def get(target, timeout)
        options = { use_ssl: @uri.scheme.casecmp?("https"), open_timeout: 5, read_timeout: timeout }
        Net::HTTP.start(@uri.hostname, @uri.port, **options) do |http|
          response = http.get("#{@uri.path.chomp("/")}#{with_query(target)}", @headers)
          [response.code.to_i, response.code == "200" ? response.body : refusal(response)]
        end
      rescue SystemCallError
        # Caught here, before the names of errors below load OpenSSL.
        raise
      rescue Timeout::Error, SocketError, OpenSSL::SSL::SSLError, Net::ProtocolError, Net::HTTPBadResponse,
             Net::HTTPHeaderSyntaxError, Zlib::Error => e
        raise Unavailable, "#{e.message} (#{e.class})"
      end

      # What the endpoint says itself is plain text.
      def refusal(response)
        return "it leads to #{response["location"]}" if response.is_a?(Net::HTTPRedirection)
        return response.body if response.content_type == "text/plain" && !response.body.to_s.empty?
        return "the server asks who you are, which --header can say" if %w[401 403].include?(response.code)

        misfit
      end

      # With the parameters that the address has, such as pid.
      def with_query(target)
        [target, *@uri.query].join(target.include?("?") ? "&" : "?")
      end
    end
  end
end
