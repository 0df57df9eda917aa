# frozen_string_literal: true

require_relative "../../spec/apps/shop/visitors"

module Bench
  # Visits a server like several simultaneous browsers: each time the same visitors, who make the same requests.
  class Load
    # A visitor who returns, always with the same cookie, and measures time. The app leaks per visitor; fewer of them
    # keep the process at a realistic size.
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

    # @param threads [Integer] simultaneous visitors
    # @param visits [Integer] how often each one comes, for ten requests each time
    def initialize(port, threads:, visits:)
      @port = port
      @threads = threads
      @visits = visits
    end

    # @return [Array<Float>] the duration of each request in seconds
    def run
      threads = Array.new(@threads) do |number|
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
