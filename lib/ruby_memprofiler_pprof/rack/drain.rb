# frozen_string_literal: true

module MemprofilerPprof
  module Rack
    # Consumes a response as a server would, and discards it.
    # @api private
    module Drain
      # The stream that a streaming body writes to. After the deadline it behaves as if the client had disconnected.
      class Sink
        # @return [Integer]
        attr_reader :bytes

        def initialize(deadline)
          @deadline = deadline
          @bytes = 0
          @closed = false
        end

        def write(*chunks)
          raise Errno::EPIPE, "the profile's time is up" if Drain.overdue?(@deadline)
          raise IOError, "closed stream" if @closed

          chunks.sum { |chunk| chunk.to_s.bytesize }.tap { |size| @bytes += size }
        end

        def <<(chunk)
          write(chunk)
          self
        end

        def read(*)
          nil
        end

        def flush
          self
        end

        def close(*)
          @closed = true
          nil
        end
        alias close_write close
        alias close_read close

        def closed?
          @closed
        end
      end

      class << self
        # @param headers [Hash] of the response
        # @param body [#each, #call] of the response; is always closed
        # @param seconds [Numeric] after how long to stop reading
        # @return [Integer] the bytes of the body
        def call(headers, body, seconds)
          deadline = now + seconds
          hijacker = headers["rack.hijack"]
          if hijacker || !body.respond_to?(:each)
            stream(hijacker || body, deadline)
          else
            iterate(body, deadline)
          end
        ensure
          body.close if body.respond_to?(:close)
        end

        # @return [Boolean]
        def overdue?(deadline)
          now > deadline
        end

        private

        def stream(body, deadline)
          sink = Sink.new(deadline)
          body.call(sink)
          sink.bytes
        rescue Errno::EPIPE
          raise unless overdue?(deadline)

          sink.bytes
        end

        def iterate(body, deadline)
          bytes = 0
          body.each do |chunk|
            bytes += chunk.bytesize
            break if overdue?(deadline)
          end
          bytes
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
