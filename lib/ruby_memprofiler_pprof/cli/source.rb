# frozen_string_literal: true

require "net/http"
require "ruby_memprofiler_pprof/socket_client"
require "stringio"

module MemprofilerPprof
  class CLI
    # Where profiles of a running process come from: its Unix socket, or the Rack endpoint.
    class Source
      # No profile could be fetched. The message says why.
      class Unavailable < StandardError; end

      # Seconds that a response may take, on top of the interval that it covers.
      ANSWER_TIMEOUT = 30
      # What the URL of an endpoint begins with.
      URL = %r{\Ahttps?://}i

      # @param address [String]
      # @param headers [Hash{String => String}] for an endpoint
      # @return [Source]
      # @raise [Unavailable] if it is a URL that is wrong
      def self.at(address, headers)
        address.match?(URL) ? Endpoint.new(address, headers) : UnixSocket.new(address)
      end

      # @param seconds [Integer, nil] over which to count allocations; nil is since the collector's last flush
      # @return [Profile]
      # @raise [Unavailable]
      def fetch(seconds)
        parse(read(seconds))
      end

      # @param bytes [String] what {#read} returned
      # @return [Profile]
      # @raise [Unavailable]
      def parse(bytes)
        Profile.load(StringIO.new(bytes))
      rescue ProfileError => e
        raise Unavailable, "no profile came: #{e.message}"
      end

      # @param seconds [Integer, nil] as for {#fetch}
      # @return [String] what should be a profile, as it came
      # @raise [Unavailable]
      def read(seconds)
        status, body = get("/heap#{"?seconds=#{seconds}" if seconds}", seconds.to_i + ANSWER_TIMEOUT)
        status == 200 ? body : raise(Unavailable, reason(status, body.to_s.dup))
      rescue SocketClient::NoAnswer => e
        raise Unavailable, e.message
      rescue SystemCallError => e
        # Only the system's own words: without the C function and the address, which is known.
        raise Unavailable, SystemCallError.new(nil, e.errno).message
      rescue Timeout::Error, SocketError, IOError, OpenSSL::SSL::SSLError, Net::ProtocolError => e
        raise Unavailable, "#{e.message} (#{e.class})"
      end

      private

      # The body's first line, without control characters: it may be from any other server.
      def reason(status, body)
        "#{body.force_encoding(Encoding::UTF_8).scrub[/[^[:cntrl:]]*/]} (status #{status})".strip
      end
    end

    # `MemprofilerPprof.start(socket: PATH)`.
    class UnixSocket < Source
      def initialize(path)
        super()
        @path = path
      end

      private

      def get(target, timeout)
        SocketClient.new(@path).get(target, timeout)
      rescue ArgumentError => e
        # The path is too long for a socket.
        raise Unavailable, e.message
      end
    end

    # A `Rack::Endpoint`.
    class Endpoint < Source
      def initialize(address, headers)
        super()
        @uri = URI.parse(address)
        @headers = headers
        raise Unavailable, "the URL names no host" if @uri.hostname.to_s.empty?
      rescue URI::Error
        raise Unavailable, "not a valid URL"
      end

      private

      def get(target, timeout)
        options = { use_ssl: @uri.scheme.casecmp?("https"), open_timeout: 5, read_timeout: timeout }
        Net::HTTP.start(@uri.hostname, @uri.port, **options) do |http|
          response = http.get("#{@uri.path.chomp("/")}#{with_query(target)}", @headers)
          [response.code.to_i, response.body]
        end
      end

      # With the parameters that the address has, such as pid.
      def with_query(target)
        [target, *@uri.query].join(target.include?("?") ? "&" : "?")
      end
    end
  end
end
