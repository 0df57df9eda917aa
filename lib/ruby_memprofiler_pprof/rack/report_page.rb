# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/page"
require "ruby_memprofiler_pprof/rack/page_query"
require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # The pages `report` and `diff` of {Endpoint}: what the commands of these names print.
    # @api private
    class ReportPage
      # @param profiles [Array<Profile>] one, or two that are to be compared
      # @param query [PageQuery]
      # @param path [String] of the endpoint
      # @param subject [String] what it is of
      # @raise [Query::Invalid]
      def initialize(profiles, query, path, subject)
        @last = profiles.last
        @query = query
        @path = path
        @subject = subject
        profiles = profiles.map(&:without_libraries) if query.app
        @view = profiles.size == 2 ? difference(*profiles) : report(*profiles)
      end

      # @return [Array] for Rack
      def response
        @query.debug ? Response.text(text) : Response.html(html)
      end

      private

      def text
        "#{[*Report::Totals.new(@last).lines, "", @view.to_s].join("\n")}\n"
      end

      def html
        Page.html(title, <<~HTML, home: @path)
          <table>#{choices.map { |name, links| "<tr><td>#{name}</td><td>#{links.join(" ")}</td></tr>" }.join}</table>
          <pre>#{Response.escape(text)}</pre>
        HTML
      end

      def report(profile)
        options = { by: @query.by, type: @query.value(profile) }.compact
        return Report::Tree.new(profile, **options) if @query.tree

        Report::Top.new(profile, **{ by: :line, sort: @query.sort, limit: @query.limit }.compact, **options)
      end

      def difference(old, new)
        @compares = true
        Report::Difference.new(old, new, **{ by: @query.by, type: @query.value(new), limit: @query.limit }.compact)
      end

      def title
        "#{@subject}#{": the last #{@query.seconds} s" if @compares}"
      end

      # Links to the other views, by parameter.
      def choices
        all = { "by" => Profile::Aggregation::GROUPINGS.map { |by| link(by, by: by) },
                "value" => @last.sample_types.map { |type| link(type.name, value: type.name) } }
        all["order"] = orders unless @compares
        all["lines"] = [link("all", app: nil), link("of the program, with what they call", app: 1)]
        all
      end

      def orders
        Profile::Aggregation::ORDERS.map { |sort| link(sort, sort: sort, tree: nil) } << link("tree", tree: 1)
      end

      def link(text, **changes)
        "<a href=\"?#{Response.escape(@query.with(**changes))}\">#{Response.escape(text)}</a>"
      end
    end
  end
end
