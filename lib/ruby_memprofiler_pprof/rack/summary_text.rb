# frozen_string_literal: true

module MemprofilerPprof
  module Rack
    # A {RequestSummary} as text.
    # @api private
    class SummaryText
      # @param summary [RequestSummary]
      def initialize(summary)
        @summary = summary
      end

      # @return [String]
      def to_s
        lines = ["#{@summary.request}: #{@summary.answer}", "", *@summary.totals]
        @summary.tables.each { |table| lines.push("", *table_lines(table)) }
        paths = @summary.paths
        lines.push("", "retained by call path (bytes, objects)") unless paths.empty?
        paths.each { |path| lines.concat(path_lines(path)) }
        "#{lines.join("\n")}\n"
      end

      private

      def table_lines(table)
        rows = table.rows.map { |name, objects, bytes| row(bytes, objects, name) }
        rows << row("", "", "and #{table.left_out} more") if table.left_out.positive?
        [table.title, *rows]
      end

      def path_lines(path)
        frames = path.frames.map { |frame| row("", "", "  #{@summary.place(frame)}") }
        [row(path.bytes, path.objects, path.class_name), *frames]
      end

      def row(bytes, objects, name)
        format("%15s  %12s  %s", @summary.count(bytes), @summary.count(objects), name)
      end
    end
  end
end
