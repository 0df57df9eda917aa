# frozen_string_literal: true

require "ruby_memprofiler_pprof/sigpipe"

module MemprofilerPprof
  class SocketServer
    # One request and its answer, in the little of HTTP that this takes: `GET /heap`, `GET /heap?seconds=N` and others,
    # with the same meaning as at {Rack::Endpoint}, which is not used here because it needs uri, a default gem (see
    # {StderrLogger} for why none is loaded).
    # @api private
    class Exchange
      # How many seconds a client may take to send its request, and as many to receive the answer.
      CLIENT_TIMEOUT = 5
      # How many bytes a request may have.
      LONGEST_REQUEST = 8192
      TEXT = "text/plain; charset=utf-8"
      TYPES = { text: TEXT, json: "application/json", bytes: "application/octet-stream" }.freeze
      REASONS = { 200 => "OK", 400 => "Bad Request", 404 => "Not Found", 405 => "Method Not Allowed",
                  503 => "Service Unavailable" }.freeze
      private_constant :CLIENT_TIMEOUT, :LONGEST_REQUEST, :TEXT, :TYPES, :REASONS

      # Ends an exchange with an error response.
      class Refusal < StandardError
        attr_reader :status

        def initialize(status, message)
          super(message)
          @status = status
        end
      end

      # The client has disconnected, or is too slow.
      class ClientLost < StandardError; end

      # @param client [IO]
      def initialize(client)
        @client = client
      end

      # Responds with what the block returns, or with why there is nothing if it raises an {Error}.
      # @yieldparam request [OnDemand::Request]
      # @yieldparam wait [Proc] waits for so many seconds, but ends the exchange if the client disconnects
      # @yieldreturn [String] a profile, or text
      # @return [void]
      def call
        request = parse(receive)
        deliver(200, TYPES.fetch(request.kind), yield(request, method(:wait)))
      rescue Refusal => e
        refuse(e.status, e.message)
      rescue Error => e
        refuse(503, "#{e.message} (#{e.class})")
      rescue ClientLost
        nil
      end

      # @param status [Integer]
      # @return [void]
      def refuse(status, message)
        deliver(status, TEXT, "#{message}\n")
      rescue ClientLost
        nil
      end

      private

      def receive
        deadline = now + CLIENT_TIMEOUT
        request = "".b
        until request.match?(/\r?\n\r?\n/)
          raise Refusal.new(400, "The request is too long.") if request.bytesize > LONGEST_REQUEST

          chunk = connected { @client.read_nonblock(LONGEST_REQUEST, exception: false) }
          raise ClientLost if chunk.nil?

          chunk == :wait_readable ? await(deadline, reading: true) : request << chunk
        end
        request
      end

      # @return [OnDemand::Request]
      def parse(text)
        verb, target = text.split(" ", 3)
        raise Refusal.new(405, "Only GET is allowed.") unless verb == "GET"

        OnDemand::Request.parse(target.to_s.sub(%r{\Ahttp://[^/]*}, "")) ||
          raise(Refusal.new(404, "There is only /#{OnDemand::NAMES.join(", /")} here."))
      rescue ArgumentError => e
        raise Refusal.new(400, e.message)
      end

      # A client sends nothing after its request, so that the socket becomes readable only when it disconnects.
      def wait(seconds)
        raise ClientLost if ready?(seconds, reading: true)
      end

      def deliver(status, type, body)
        bytes = "HTTP/1.0 #{status} #{REASONS.fetch(status)}\r\nContent-Type: #{type}\r\n" \
                "Content-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n".b << body.b
        deadline = now + CLIENT_TIMEOUT
        until bytes.empty?
          await(deadline, reading: false)
          sent = connected { @client.send(bytes, Socket::MSG_DONTWAIT | Sigpipe::NONE) }
          bytes = bytes.byteslice(sent..)
        end
      end

      def await(deadline, reading:)
        raise ClientLost unless ready?([deadline - now, 0].max, reading: reading)
      end

      # Not IO#wait_readable and the like, which need io/wait on Ruby 3.1, a default gem.
      def ready?(seconds, reading:)
        ios = [@client]
        connected { reading ? IO.select(ios, nil, nil, seconds) : IO.select(nil, ios, nil, seconds) }
      end

      # Only here do errors of the system mean that the client is lost: the answer may have failed by such a one, too.
      def connected
        yield
      rescue SystemCallError, IOError
        raise ClientLost
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
