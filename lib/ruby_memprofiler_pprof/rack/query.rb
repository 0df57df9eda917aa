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
        pairs = Query.pairs(text) or raise Invalid, "The query #{text.inspect} is malformed."
        @names = pairs.map(&:first)
        @parameters = pairs.reverse.to_h
        @gc = flag("gc")
        @debug = flag("debug")
        @seconds = number("seconds", max_seconds, " (max_seconds)")
        @pid = process
      end

      # @return [Hash{String => String}, nil] parameters, the first of each name; nil if malformed
      def self.decode(text)
        pairs(text)&.reverse&.to_h
      end

      # @return [Array<Array(String, String)>, nil] parameters; nil if malformed
      def self.pairs(text)
        URI.decode_www_form(text.to_s.b)
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

      # @return [String, nil] nil if there is no such parameter
      # @raise [Invalid] if there are several, or it is an array as frameworks write it
      def parameter(name)
        return @parameters[name] unless @names.count(name) > 1 || @names.any? { |each| each.start_with?("#{name}[") }

        raise Invalid, "#{name} must be given once, as #{name}=…."
      end

      def flag(name)
        case value = parameter(name)
        when nil, "0" then false
        when "1" then true
        else invalid(name, value, "0 or 1")
        end
      end

      # @param allowed [Array<Symbol>]
      # @return [Symbol, nil] nil if there is no such parameter
      def choice(name, allowed)
        value = parameter(name) or return
        allowed.find { |each| each.name == value } || invalid(name, value, "one of #{allowed.join(", ")}")
      end

      def process
        value = parameter("pid") or return Process.pid
        value == "all" ? :all : Integer(value, 10, exception: false) || invalid("pid", value, "a process's id or all")
      end

      def number(name, limit, source = nil)
        value = parameter(name) or return
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
