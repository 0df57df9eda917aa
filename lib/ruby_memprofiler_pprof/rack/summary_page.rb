# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/page"
require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # A {RequestSummary} as a page.
    # @api private
    class SummaryPage
      # @param summary [RequestSummary]
      def initialize(summary)
        @summary = summary
      end

      # @return [String] HTML
      def to_s
        Page.html(@summary.request, <<~HTML)
          <p>#{escape(@summary.answer)}</p>
          <p>#{@summary.totals.map { |line| escape(line) }.join("<br>")}</p>
          #{@summary.tables.map { |table| table_html(table) }.join}
          #{paths_html(@summary.paths)}
        HTML
      end

      private

      def table_html(table)
        rows = table.rows.map do |name, objects, bytes|
          "<tr>#{number(bytes)}#{number(objects)}#{code(escape(name))}</tr>"
        end
        more = "<p>and #{table.left_out} more</p>" if table.left_out.positive?
        "<h2>#{escape(table.title)}</h2><table>#{rows.join}</table>#{more}"
      end

      def paths_html(paths)
        return if paths.empty?

        rows = paths.map do |path|
          frames = path.frames.map { |frame| "<br>#{escape(@summary.place(frame))}" }
          "<tr>#{number(path.bytes)}#{number(path.objects)}" \
            "#{code("<b>#{escape(path.class_name)}</b>#{frames.join}")}</tr>"
        end
        "<h2>retained by call path (bytes, objects)</h2><table>#{rows.join}</table>"
      end

      def number(number)
        "<td class=\"number\">#{@summary.count(number)}</td>"
      end

      def code(html)
        "<td class=\"code\">#{html}</td>"
      end

      def escape(text)
        Response.escape(text)
      end
    end
  end
end
