# frozen_string_literal: true

require_relative "../../spec/apps/shop/visitors"

module Bench
  # Visits a server as several browsers at a time would: each time the same visitors, who make the same requests.
  class Load
    # A visitor who comes back, always with the same cookie, and looks at the clock. The app's leak is so much per
    # visitor; fewer of them keep the process at a size as a real one has.
    class TimedVisitor < Visitor
      attr_reader :seconds

      def initialize(port, random)
        @seconds = []
        super { nil }
      end

      private

      def send_request(request)
        start = Bench.clock
        body = super
        @seconds << (Bench.clock - start)
        body
      end
    end

    # @param browsers [Integer] visitors at a time
    # @param visits [Integer] how often each comes, ten requests each time
    def initialize(port, browsers:, visits:)
      @port = port
      @browsers = browsers
      @visits = visits
    end

    # @return [Array<Float>] the seconds that each request took
    def run
      threads = Array.new(@browsers) do |number|
        Thread.new do
          visitor = TimedVisitor.new(@port, Random.new(number))
          @visits.times { visitor.visit }
          visitor.seconds
        end
      end
      threads.flat_map(&:value)
    end
  end
end
