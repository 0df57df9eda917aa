# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/page_query"
require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # The page `flamegraph` of {Endpoint}: what the command of this name writes.
    # @api private
    class FlamegraphPage
      # @param profile [Profile]
      # @param query [PageQuery]
      # @param subject [String] what it is of
      # @raise [Query::Invalid]
      def initialize(profile, query, subject)
        @profile = query.app ? profile.without_libraries : profile
        @type = query.value(profile)
        @query = query
        @subject = subject
      end

      # @return [Array] for Rack; as text, folded stacks
      def response
        return Response.text(@profile.to_folded(type: @type)) if @query.debug

        Response.html(html, policy: Flamegraph.policy)
      end

      private

      def html
        Flamegraph.new([@profile], names: [@subject], title: @subject, **{ type: @type, by: @query.by }.compact).to_html
      end
    end
  end
end
