# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack/response"

module MemprofilerPprof
  module Rack
    # What the HTML pages have in common; but for the flame graph, which is a document of its own.
    # @api private
    module Page
      STYLE = <<~CSS
        :root { color-scheme: light dark }
        body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
        table { border-collapse: collapse; margin: 0.5em 0 1.5em }
        th, td { text-align: left; padding: 0.15em 1em 0.15em 0; vertical-align: top; border-bottom: 1px solid #8884 }
        td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
        pre { overflow-x: auto }
        pre, code, td.code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
      CSS
      private_constant :STYLE

      # @param title [String] text
      # @param body [String] HTML, what follows the heading
      # @param home [String, nil] the path of the endpoint, for a link to it
      # @return [String] HTML
      def self.html(title, body, home: nil)
        title = Response.escape(title)
        <<~HTML
          <!DOCTYPE html>
          <html lang="en"><head><meta charset="utf-8"><title>#{title}</title><style>#{STYLE}</style></head>
          <body><h1>#{title}</h1>
          #{body.chomp}
          #{"<p><a href=\"#{Response.escape(home)}/\">all profiles</a></p>" if home}
          </body></html>
        HTML
      end
    end
  end
end
