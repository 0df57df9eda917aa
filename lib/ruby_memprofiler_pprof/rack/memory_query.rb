# frozen_string_literal: true

require "ruby_memprofiler_pprof/on_demand"
require "ruby_memprofiler_pprof/rack/query"

module MemprofilerPprof
  module Rack
    # The parameters of the page `memory` of {Endpoint}.
    # @api private
    class MemoryQuery < Query
      FORMATS = %i[html text json].freeze
      private_constant :FORMATS

      # @return [Symbol] `:html`, `:text` or `:json`
      attr_reader :format

      # @param text [String, nil] the request's QUERY_STRING
      # @param max_seconds [Integer]
      # @raise [Invalid]
      def initialize(text, max_seconds)
        super
        @quick = flag("quick")
        @format = choice("format", FORMATS) || (debug ? :text : :html)
      end

      # @return [OnDemand::Request] for JSON, of which any form can be made
      def request
        OnDemand::Request.new(name: "memory", format: :json, quick: @quick)
      end
    end
  end
end
