# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/page"
require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # The page `leaks` of {Endpoint}: what the command of this name prints, of each process by itself.
    # @api private
    class LeaksPage
      # @param answers [Answers]
      # @param query [PageQuery]
      # @param path [String] of the endpoint
      def initialize(answers, query, path)
        @answers = answers
        @query = query
        @path = path
      end

      # @return [Array] for Rack
      def response
        text = "#{@answers.texts.join("\n\n")}\n"
        @query.debug ? Response.text(text) : Response.html(html(text))
      end

      private

      def html(text)
        Page.html("#{@answers.subject}: what keeps growing", <<~HTML, home: @path)
          <table><tr><td>by</td><td>#{links.join(" ")}</td></tr></table>
          <pre>#{Response.escape(text)}</pre>
        HTML
      end

      def links
        Profile::Aggregation::GROUPINGS.map { |by| "<a href=\"?#{Response.escape(@query.with(by: by))}\">#{by}</a>" }
      end
    end
  end
end
