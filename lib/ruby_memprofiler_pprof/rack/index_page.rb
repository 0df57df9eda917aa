# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/page"
require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # The page that lists what {Endpoint} serves.
    # @api private
    class IndexPage
      ROWS = [["report", "", "which lines retain most"],
              ["report", "?by=class", "which classes retain most"],
              ["diff", "?seconds=10", "what has changed after 10 seconds"],
              ["flamegraph", "", "what is alive, as a flame graph"],
              ["leaks", "", "which lines keep growing"],
              ["retainers", "", "who holds what is alive; pauses the program for some milliseconds"],
              ["memory", "", "where all of the memory is"],
              ["heap", "", "what is alive"],
              ["heap", "?gc=1", "what is alive after a garbage collection"],
              ["allocs", "?seconds=10", "what is allocated in the next 10 seconds"],
              ["delta_heap", "", "what is alive, and what was allocated since the last delta_heap"],
              ["heap", "?debug=1", "what is alive, as text"],
              ["profile", "?seconds=10", "what uses CPU time in the next 10 seconds"],
              ["cmdline", "", "the command that runs"]].freeze
      # Those that each process has in the list of all.
      PROCESS_ROWS = %w[report flamegraph leaks retainers memory heap].freeze
      private_constant :ROWS, :PROCESS_ROWS

      # @param env [Hash] of the request
      # @param collector [Collector, nil] the one that runs
      # @param max_seconds [Integer]
      # @param pids [Array<Integer>] of the processes that can be asked
      def initialize(env, collector, max_seconds, pids)
        path = Response.utf8(env["SCRIPT_NAME"])
        @title = "#{path} on #{Process.pid}"
        @path = escape(path)
        @url = escape("#{env["rack.url_scheme"]}://#{Response.utf8(env["HTTP_HOST"] || env["SERVER_NAME"])}#{path}")
        @collector = collector
        @max_seconds = max_seconds
        @pids = pids
      end

      # @return [String] HTML
      def to_s
        Page.html(@title, <<~HTML)
          <p>#{state}</p>
          <table>#{ROWS.map { |row| row_of(*row) }.join}</table>
          #{processes}
          <p>All but <code>cmdline</code> take <code>pid=N</code> or <code>pid=all</code> (of another process, or of all) and
          <code>debug=1</code> (text); all but <code>leaks</code>, <code>retainers</code> and <code>memory</code> also
          <code>seconds=N</code> (count what is allocated or used in N seconds, at most #{@max_seconds}), and all of these
          but <code>profile</code> <code>gc=1</code> (collect garbage first).</p>
          <p><code>go tool pprof -http=: #{@url}/heap</code></p>
        HTML
      end

      private

      def row_of(name, query, what)
        "<tr><td class=\"code\">#{link(name, query)}</td><td>#{what}</td></tr>"
      end

      def link(name, query, text = "#{name}#{query}")
        "<a href=\"#{@path}/#{name}#{query}\">#{text}</a>"
      end

      def processes
        return alone if @pids.size < 2

        rows = [*@pids, "all"].map do |pid|
          links = PROCESS_ROWS.map { |name| link(name, "?pid=#{pid}", name) }
          "<tr><td class=\"number\">#{pid}</td><td class=\"code\">#{links.join(" ")}</td>" \
            "<td>#{"this one" if pid == Process.pid}</td></tr>"
        end
        "<h2>Processes</h2><table>#{rows.join}</table>"
      end

      def alone
        "<p>No other process of this program is known. To have all listed here, let the setting <code>socket</code> " \
          "contain <code>%{pid}</code>, such as <code>tmp/sockets/memprofiler-%{pid}.sock</code>.</p>"
      end

      def state
        return "Process #{Process.pid}: no collector is running." unless @collector

        stats = @collector.stats
        "Process #{Process.pid}, Ruby #{RUBY_VERSION}, ruby_memprofiler_pprof #{VERSION}: " \
          "#{stats[:live_samples]} live samples at a rate of #{stats[:effective_sample_rate]}. " \
          "Sampling: #{stats[:sampling]} (#{stats[:sampling_reason]})."
      end

      def escape(text)
        Response.escape(text)
      end
    end
  end
end
