# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # The page that lists what {Endpoint} serves.
    # @api private
    class IndexPage
      # The style of this page and of others.
      STYLE = <<~CSS
        :root { color-scheme: light dark }
        body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
        table { border-collapse: collapse; margin: 0.5em 0 1.5em }
        th, td { text-align: left; padding: 0.15em 1em 0.15em 0; vertical-align: top; border-bottom: 1px solid #8884 }
        td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
        pre { overflow-x: auto }
        pre, code, td.code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
      CSS
      ROWS = [["report", "", "which lines retain most"],
              ["report", "?by=class", "which classes retain most"],
              ["diff", "?seconds=10", "what has changed after 10 seconds"],
              ["flamegraph", "", "what is alive, as a flame graph"],
              ["heap", "", "what is alive"],
              ["heap", "?gc=1", "what is alive after a garbage collection"],
              ["allocs", "?seconds=10", "what is allocated in the next 10 seconds"],
              ["delta_heap", "", "what is alive, and what was allocated since the last delta_heap"],
              ["heap", "?debug=1", "what is alive, as text"],
              ["cmdline", "", "the command that runs"]].freeze
      private_constant :ROWS

      # @param env [Hash] of the request
      # @param collector [Collector, nil] the one that runs
      # @param max_seconds [Integer]
      def initialize(env, collector, max_seconds)
        @path = escape(env["SCRIPT_NAME"])
        @url = escape("#{env["rack.url_scheme"]}://#{env["HTTP_HOST"] || env["SERVER_NAME"]}#{env["SCRIPT_NAME"]}")
        @collector = collector
        @max_seconds = max_seconds
      end

      # @return [String] HTML
      def to_s
        <<~HTML
          <!DOCTYPE html>
          <html lang="en"><head><meta charset="utf-8"><title>#{@path} on #{Process.pid}</title><style>#{STYLE}</style></head>
          <body><h1>#{@path}</h1>
          <p>#{state}</p>
          <table>#{ROWS.map { |row| row_of(*row) }.join}</table>
          <p>All but <code>cmdline</code> take <code>gc=1</code> (collect garbage first), <code>seconds=N</code> (count the
          allocations of N seconds, at most #{@max_seconds}) and <code>debug=1</code> (text).</p>
          <p><code>go tool pprof -http=: #{@url}/heap</code></p>
          </body></html>
        HTML
      end

      private

      def row_of(name, query, what)
        "<tr><td class=\"code\"><a href=\"#{@path}/#{name}#{query}\">#{name}#{query}</a></td><td>#{what}</td></tr>"
      end

      def state
        return "Process #{Process.pid}: no collector is running." unless @collector

        stats = @collector.stats
        "Process #{Process.pid}, Ruby #{RUBY_VERSION}, ruby_memprofiler_pprof #{VERSION}: " \
          "#{stats[:live_samples]} live samples at a rate of #{stats[:effective_sample_rate]}."
      end

      def escape(text)
        Response.escape(text)
      end
    end
  end
end
