# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # What a request allocated and retained, in tables.
    # @api private
    class RequestSummary
      # What is left of the program's response: status, bytes of the body, seconds that it took.
      Outcome = Struct.new(:status, :bytes, :seconds)
      # What objects of one class and call path retain, with the program's own frames, the innermost first.
      Path = Struct.new(:class_name, :objects, :bytes, :frames)
      # Rows of name, objects and bytes, the greatest first, and how many more there are.
      Table = Struct.new(:title, :rows, :left_out)
      # The frame in which the program's own stack begins.
      OUTERMOST = "MemprofilerPprof::Rack::Middleware#run"
      # What the middleware itself allocates, such as caches at its first run.
      OWN = /\A(?:block in )?MemprofilerPprof::Rack::/
      # How many call paths there are at most.
      PATHS = 10
      private_constant :OUTERMOST, :OWN, :PATHS

      # @param env [Hash] of the request
      # @return [String] the request's method and path, which servers pass on as any bytes
      def self.request(env)
        Response.utf8(env["REQUEST_METHOD"], " ", env["SCRIPT_NAME"], env["PATH_INFO"])
      end

      # @param data [ProfileData]
      # @param env [Hash] of the request
      # @param outcome [Outcome]
      # @param top [Integer] rows of each table
      def initialize(data, env, outcome, top)
        @samples = data.profile.samples.reject { |sample| OWN.match?(sample.stack.first&.name.to_s) }
        @request = self.class.request(env)
        @outcome = outcome
        @top = top
      end

      # @return [String] the request's method and path
      attr_reader :request

      # @return [String] about the response
      def answer
        "status #{@outcome.status}, #{count(@outcome.bytes)} bytes, " \
          "#{(@outcome.seconds * 1000).round} ms while profiled"
      end

      # @return [Array<String>]
      def totals
        allocations, allocated_bytes, retained, retained_bytes = sums
        ["allocated: #{count(allocated_bytes)} bytes in #{count(allocations)} objects",
         "retained:  #{count(retained_bytes)} bytes in #{count(retained)} objects"]
      end

      # @return [Array<Table>]
      def tables
        [["retained", 2], ["allocated", 0]].flat_map do |what, value|
          [table("#{what} by class", value) { |sample| class_of(sample) },
           table("#{what} by line", value) { |sample| line(sample) }]
        end
      end

      # @return [Array<Path>] those that retain most
      def paths
        retained = @samples.select { |sample| sample.values[2].positive? }.max_by(PATHS) { |sample| sample.values[3] }
        retained.map do |sample|
          own = sample.stack.take_while { |frame| frame.name != OUTERMOST }
          Path.new(class_of(sample), *sample.values.last(2), own)
        end
      end

      # @param frame [Profile::Frame]
      # @return [String]
      def place(frame)
        "#{frame.file}:#{frame.line} in #{frame.name}"
      end

      # @param number [Integer]
      # @return [String] with a comma between thousands
      def count(number)
        number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")
      end

      private

      def sums
        @samples.map(&:values).reduce([0] * 4) { |sums, values| sums.zip(values).map(&:sum) }
      end

      def table(title, value, &)
        rows = @samples.group_by(&).map do |name, samples|
          [name, samples.sum { |sample| sample.values[value] }, samples.sum { |sample| sample.values[value + 1] }]
        end
        rows = rows.select { |_, objects| objects.positive? }.sort_by { |name, _, bytes| [-bytes, name] }
        Table.new("#{title} (bytes, objects)", rows.first(@top), [rows.size - @top, 0].max)
      end

      def line(sample)
        frame = sample.stack.first
        frame ? place(frame) : "(no stack)"
      end

      def class_of(sample)
        sample.labels.fetch("class", "(unknown)")
      end
    end
  end
end
