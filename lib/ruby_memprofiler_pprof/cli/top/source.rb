# frozen_string_literal: true

require "net/http"
require "socket"
require "stringio"

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # Where profiles of a running process come from: its Unix socket, or the Rack endpoint.
      class Source
        # No profile could be fetched. The message says why.
        class Unavailable < StandardError; end

        # Seconds that a response may take, on top of the interval that it covers.
        ANSWER_TIMEOUT = 30

        # @param address [String]
        # @param headers [Hash{String => String}] for an endpoint
        # @return [Source]
        # @raise [Unavailable] if it is a URL that is wrong
        def self.at(address, headers)
          address.match?(%r{\Ahttps?://}i) ? Endpoint.new(address, headers) : UnixSocket.new(address)
        end

        # @param seconds [Integer] over which to count allocations
        # @return [Profile]
        # @raise [Unavailable]
        def fetch(seconds)
          status, body = get(seconds)
          raise Unavailable, reason(status, body.to_s.dup) unless status == 200

          Profile.load(StringIO.new(body))
        rescue ProfileError => e
          raise Unavailable, "no profile came: #{e.message}"
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

        def get(seconds)
          UNIXSocket.open(@path) do |socket|
            socket.write("GET /heap?seconds=#{seconds} HTTP/1.0\r\n\r\n")
            answer = Timeout.timeout(seconds + ANSWER_TIMEOUT) { socket.read }
            head, body = answer.split("\r\n\r\n", 2)
            unless body && body.bytesize == head[/^Content-Length: (\d+)/, 1].to_i
              raise Unavailable, "the process has hung up"
            end

            [head.split[1].to_i, body]
          end
        end
      end

      # A `Rack::Endpoint`.
      class Endpoint < Source
        def initialize(address, headers)
          super()
          @uri = URI.parse(address.chomp("/"))
          @headers = headers
          raise Unavailable, "the URL names no host" if @uri.hostname.to_s.empty?
        rescue URI::Error
          raise Unavailable, "not a valid URL"
        end

        private

        def get(seconds)
          options = { use_ssl: @uri.scheme.casecmp?("https"), open_timeout: 5, read_timeout: seconds + ANSWER_TIMEOUT }
          Net::HTTP.start(@uri.hostname, @uri.port, **options) do |http|
            response = http.get("#{@uri.path}/heap?seconds=#{seconds}", @headers)
            [response.code.to_i, response.body]
          end
        end
      end
    end
  end
end
