# frozen_string_literal: true

require "ruby_memprofiler_pprof/on_demand"
require "ruby_memprofiler_pprof/rack/query"

module MemprofilerPprof
  module Rack
    # The parameters of the page `retainers` of {Endpoint}: those of a request to a socket.
    # @api private
    class RetainersQuery < Query
      NAMES = %w[site class limit timeout in_process].freeze
      private_constant :NAMES

      # @return [Symbol] a value of {OnDemand::FORMATS}, or :html
      attr_reader :format

      # @param text [String, nil] the request's QUERY_STRING
      # @param max_seconds [Integer]
      # @raise [Invalid]
      def initialize(text, max_seconds)
        super
        given = NAMES.filter_map { |name| [name == "class" ? :class_name : name.to_sym, read(name)] if text?(name) }
        @given = given.to_h
        @format = debug ? :text : :html
        @format = read("format") if text?("format")
      end

      # @return [OnDemand::Request]
      def request
        format = @format == :html ? :text : @format
        OnDemand::Request.new(name: "retainers", format: format, **@given)
      end

      private

      def text?(name)
        !parameter(name).to_s.empty?
      end

      def read(name)
        allowed, values = OnDemand::PARAMETERS.fetch(name)
        text = parameter(name).dup.force_encoding(Encoding::UTF_8).scrub
        value = values[text]
        value.nil? ? invalid(name, text, allowed) : value
      end
    end
  end
end
