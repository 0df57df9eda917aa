# frozen_string_literal: true

require "ruby_memprofiler_pprof/flamegraph"
require "ruby_memprofiler_pprof/rack/query"
require "ruby_memprofiler_pprof/report"

module MemprofilerPprof
  module Rack
    # The parameters of a page of {Endpoint}, named like the options of the command line.
    # @api private
    class PageQuery < Query
      # The values that profiles can have, by Ruby's names and by Go's.
      VALUES = %i[allocations allocations_size retained_objects retained_size
                  alloc_objects alloc_space inuse_objects inuse_space].freeze
      private_constant :VALUES

      # @return [Symbol, nil] what to group by
      attr_reader :by
      # @return [Symbol, nil] one of Profile::Aggregation::ORDERS
      attr_reader :sort
      # @return [Integer, nil] the most sites
      attr_reader :limit
      # @return [Boolean] whether to show the calls
      attr_reader :tree
      # @return [Boolean] whether what libraries allocate counts for the program's lines
      attr_reader :app

      # @param page [String] its name
      # @param text [String, nil] the request's QUERY_STRING
      # @param max_seconds [Integer]
      # @raise [Invalid]
      def initialize(page, text, max_seconds)
        super(text, max_seconds)
        @by = choice("by", (page == "flamegraph" ? Flamegraph : Profile::Aggregation)::GROUPINGS)
        @sort = choice("sort", Profile::Aggregation::ORDERS)
        @limit = number("limit", OnDemand::MOST_SITES)
        @tree = flag("tree")
        @app = flag("app")
        @seconds ||= [OnDemand::DIFF_SECONDS, max_seconds].min if page == "diff"
      end

      # @param profile [Profile] whose values there are
      # @return [Symbol, nil] the requested one
      # @raise [Invalid]
      def value(profile)
        choice("value", profile.sample_types.map { |type| type.name.to_sym })
      end

      # For a HEAD request, for which no profile is taken.
      # @return [void]
      # @raise [Invalid] if no profile has the requested value
      def check_value
        choice("value", VALUES)
      end
    end
  end
end
