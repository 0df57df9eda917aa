# frozen_string_literal: true

require "net/http"
require "ruby_memprofiler_pprof/sigpipe"
require "ruby_memprofiler_pprof/utf8"
require "time"
require "timeout"
require "uri"

module MemprofilerPprof
  class Pyroscope
    # Makes one attempt to send one profile. What the server says is shown on one line, without control characters.
    # @api private
    class Client
      # The outcome of an attempt: the response's status or nil, a message, and how long the server asks to wait.
      Answer = Struct.new(:status, :message, :retry_after) do
        # @return [Boolean]
        def accepted?
          (200..299).cover?(status)
        end

        # @return [Boolean] whether the failure may pass, so that a retry makes sense
        def passing?
          status.nil? || status == 408 || status == 429 || status >= 500
        end

        # @return [String]
        def to_s
          status ? "status #{status}: #{message}" : message
        end
      end

      # A connection of Net::HTTP that sends no SIGPIPE; over TLS OpenSSL writes, which can only send it.
      module Quiet
        private

        def on_connect
          super
          @socket.io.extend(Sigpipe::Ignoring) unless use_ssl?
        end
      end

      # How much of an error's text is kept.
      MESSAGE_SIZE = 300
      private_constant :Quiet, :MESSAGE_SIZE

      # @param url [String]
      # @param timeout [Numeric]
      # @raise [ArgumentError, TypeError]
      def initialize(url, timeout:, auth_token:, basic_auth:, tenant_id:)
        @uri = ingest(url)
        @timeout = timeout
        raise ArgumentError, "auth_token and basic_auth exclude each other" if auth_token && basic_auth

        @basic_auth = pair(basic_auth)
        @headers = { "Content-Type" => "application/octet-stream", "User-Agent" => "ruby_memprofiler_pprof/#{VERSION}",
                     "Authorization" => auth_token && "Bearer #{text(:auth_token, auth_token)}",
                     "X-Scope-OrgID" => tenant_id && text(:tenant_id, tenant_id) }.compact.freeze
      end

      # @param name [String] of the series
      # @param profile [ProfileData] for its times
      # @param bytes [String] the profile
      # @return [Answer]
      def post(name, profile, bytes)
        request = Net::HTTP::Post.new(target(name, profile), @headers)
        request.basic_auth(*@basic_auth) if @basic_auth
        request.body = bytes
        head = nil
        body = "".b
        # Net::HTTP itself limits only each single read and write.
        Timeout.timeout(@timeout, nil, "no answer within #{@timeout} s") do
          connection.start { |http| http.request(request) { |response| break read(head = response, body) } }
        end
        answer(head, body)
      rescue StandardError => e
        # No server, a server that does not answer, or one that does not speak HTTP: there are many exceptions. None of
        # them matters once the status is there.
        head ? answer(head, body) : Answer.new(nil, shown("#{e.class}: #{e.message}"))
      end

      private

      def ingest(url)
        uri = URI.parse(url.to_s)
        raise ArgumentError, wrong_url(url) unless uri.is_a?(URI::HTTP) && !uri.host.to_s.empty?
        raise ArgumentError, "url must not have a user or password: pass basic_auth" if uri.userinfo

        uri.path = "#{uri.path.delete_suffix("/")}/ingest"
        uri
      rescue URI::InvalidURIError
        raise ArgumentError, wrong_url(url)
      end

      def wrong_url(url)
        "url must begin with http:// or https:// and name a host, got #{Configuration::Type.shown(url)}"
      end

      def pair(basic_auth)
        return if basic_auth.nil?
        return basic_auth if basic_auth.is_a?(Array) && basic_auth.size == 2 && basic_auth.all?(String)

        # The message leaves out the value, which may contain the password.
        raise TypeError, "basic_auth must be nil or an Array of user and password"
      end

      def text(name, value)
        return value if value.is_a?(String) && value.match?(/\A[[:graph:]]+\z/)

        raise ArgumentError, "#{name} must be a String without blanks"
      end

      # The spyName is not one of Pyroscope's own: for some of those it rewrites function names. The body is the bare
      # profile, which the server accepts for this format without a multipart form.
      def target(name, profile)
        till = profile.time_nanos
        from = till - profile.duration_nanos
        query = URI.encode_www_form(name: name, from: from / 1_000_000_000, until: -(-till / 1_000_000_000),
                                    format: "pprof", spyName: "ruby_memprofiler_pprof")
        "#{@uri.path}?#{[@uri.query, query].compact.join("&")}"
      end

      def connection
        Net::HTTP.new(@uri.hostname, @uri.port).extend(Quiet).tap do |http|
          http.use_ssl = @uri.is_a?(URI::HTTPS)
          # That of the whole attempt includes these.
          http.open_timeout = http.read_timeout = http.write_timeout = nil
          http.max_retries = 0
        end
      end

      # Appends no more of an error's text than is worth logging. To leave before its end closes the connection.
      def read(response, body)
        return if response.is_a?(Net::HTTPSuccess)

        response.read_body do |chunk|
          body << chunk
          break if body.bytesize > MESSAGE_SIZE
        end
      end

      def answer(response, body)
        location = response["Location"]&.then { |url| "to #{url}" } if response.is_a?(Net::HTTPRedirection)
        Answer.new(response.code.to_i, shown(response.message, location, body), retry_after(response["Retry-After"]))
      end

      # @param parts [Array<String, nil>] with any bytes
      def shown(*parts)
        UTF8.printable(parts.compact.map { |part| part.b.strip }.join(" "))[0, MESSAGE_SIZE].rstrip
      end

      # @param text [String, nil] a number of seconds or an HTTP date
      # @return [Numeric, nil] seconds, which may be negative; nil if there is none or it is neither
      def retry_after(text)
        Float(text, exception: false) || (text && (Time.httpdate(text) - Time.now))
      rescue ArgumentError
        nil
      end
    end
  end
end
