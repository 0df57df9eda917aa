# frozen_string_literal: true

require "uri"

module MemprofilerPprof
  module Rack
    # The parameters of a request, as Go's net/http/pprof has them: `gc`, `debug`, `seconds`; and `pid`. Others are
    # ignored: they may be for `authorize:`, such as a token.
    # @api private
    class Query
      # A parameter has a wrong value. The message names it, its value and what is allowed.
      class Invalid < StandardError; end

      # @param text [String, nil] the request's QUERY_STRING
      # @param max_seconds [Integer]
      # @raise [Invalid]
      def initialize(text, max_seconds)
        @parameters = Query.decode(text) or raise Invalid, "The query #{text.inspect} is malformed."
        @gc = flag("gc")
        @debug = flag("debug")
        @seconds = number("seconds", max_seconds, " (max_seconds)")
        @pid = process
      end

      # @return [Hash{String => String}, nil] parameters, the first of each name; nil if malformed
      def self.decode(text)
        URI.decode_www_form(text.to_s.b).reverse.to_h
      rescue ArgumentError
        nil
      end

      # @return [Boolean] whether to collect garbage first
      attr_reader :gc
      # @return [Boolean] whether to answer with text
      attr_reader :debug
      # @return [Integer, nil] over how many seconds to count allocations
      attr_reader :seconds
      # @return [Integer, Symbol] the id of the process that is to answer, by default this one's; or :all
      attr_reader :pid

      # @return [String] this query with other values; nil takes one away
      def with(**changes)
        URI.encode_www_form(@parameters.merge(changes.transform_keys(&:to_s)).compact)
      end

      private

      def flag(name)
        case value = @parameters[name]
        when nil, "0" then false
        when "1" then true
        else invalid(name, value, "0 or 1")
        end
      end

      # @param allowed [Array<Symbol>]
      # @return [Symbol, nil] nil if there is no such parameter
      def choice(name, allowed)
        value = @parameters[name] or return
        allowed.find { |each| each.name == value } || invalid(name, value, "one of #{allowed.join(", ")}")
      end

      def process
        value = @parameters.fetch("pid") { return Process.pid }
        value == "all" ? :all : Integer(value, 10, exception: false) || invalid("pid", value, "a process's id or all")
      end

      def number(name, limit, source = nil)
        value = @parameters[name] or return
        number = Integer(value, 10, exception: false)
        return number if number&.between?(1, limit)

        invalid(name, value, "a whole number from 1 to #{limit}#{source}")
      end

      def invalid(name, value, allowed)
        raise Invalid, "#{name} must be #{allowed}, got #{value.inspect}."
      end
    end
  end
end
