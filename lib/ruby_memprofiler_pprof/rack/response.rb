# frozen_string_literal: true

module MemprofilerPprof
  module Rack
    # Builds responses. Names of headers are in lower case, as Rack 3 wants them.
    # @api private
    module Response
      SAFE = { "x-content-type-options" => "nosniff", "cache-control" => "no-store" }.freeze
      TEXT = "text/plain; charset=utf-8"
      # Allows no script, no image and nothing from elsewhere.
      POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
      ESCAPES = { "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;", "'" => "&#39;" }.freeze
      private_constant :SAFE, :TEXT, :POLICY, :ESCAPES

      class << self
        # An error in the form in which `go tool pprof` shows its text.
        def error(status, message, **headers)
          headers = headers.transform_keys { |key| key.to_s.tr("_", "-") }
          build(status, TEXT, "#{message}\n", { "x-go-pprof" => "1", **headers })
        end

        def not_allowed
          error(405, "Only GET and HEAD are allowed.", allow: "GET, HEAD")
        end

        def off
          error(503, "The setting enabled is false.")
        end

        # @param limit [Integer]
        def too_many(limit)
          error(429, "Too many profiles at a time: max_concurrent is #{limit}. Try again later, or raise it. A " \
                     "profile keeps its place to its end, even if its client has gone.", retry_after: "1")
        end

        def text(body)
          build(200, TEXT, body)
        end

        def json(body)
          build(200, "application/json", body)
        end

        # @param policy [String] the page's Content-Security-Policy; no other page may frame it in any case
        def html(body, policy: POLICY)
          build(200, "text/html; charset=utf-8", body,
                "content-security-policy" => "#{policy}; frame-ancestors 'none'")
        end

        def profile(name, bytes)
          build(200, "application/octet-stream", bytes,
                "content-disposition" => "attachment; filename=\"#{name}.pprof\"")
        end

        # What has this format, with nothing in it.
        # @param format [Symbol]
        def empty(format)
          case format
          when :html then html("")
          when :text then text("")
          when :json then json("")
          else profile("retainers", "")
          end
        end

        # For a HEAD request, in answer to which nobody knows how long the body would be.
        def without_body((status, headers, _))
          [status, headers.except("content-length"), []]
        end

        # @param parts [Array<#to_s>] in any encodings, with any bytes
        # @return [String] all of them together
        def utf8(*parts)
          parts.map { |part| part.to_s.b }.join.force_encoding(Encoding::UTF_8).scrub
        end

        # @return [String] as text or attribute in HTML
        def escape(text)
          text.to_s.scrub.gsub(/[&<>"']/, ESCAPES)
        end

        private

        def build(status, type, body, headers = {})
          [status, { "content-type" => type, "content-length" => body.bytesize.to_s, **SAFE, **headers }, [body]]
        end
      end
    end
  end
end
