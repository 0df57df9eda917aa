# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # How sites, nodes and estimates are shown.
    #
    # @api private
    module SiteText
      # Marks a row based on fewer than ten samples.
      LOW_CONFIDENCE = "low confidence"

      module_function

      # @return [Array(String, String)] such as "app/a.rb:7  Foo#bar", and the same in short. Control characters, which
      #   could be commands to a terminal, are replaced
      def label(site, paths)
        names(site, paths).map { |name| printable(name) }
      end

      # @return [String] the text without control characters
      def printable(text)
        text.scrub.gsub(/[[:cntrl:]]/, "?")
      end

      def names(site, paths)
        return [paths.shorten(site.name)] * 2 unless site.file

        place = "#{paths.shorten(site.file)}#{":#{site.line}" if site.line&.positive?}"
        return ["#{place}#{"  #{site.function}" if site.function}", place] if site.name.start_with?(site.file)

        ["#{site.name}  #{place}", site.name]
      end

      # @return [PathShortener] for sites or nodes
      def paths(sites)
        PathShortener.new(sites.map { |site| site.file || (site.name if site.name.start_with?("/")) })
      end

      def note(estimate)
        estimate.low_confidence? ? LOW_CONFIDENCE : ""
      end

      def interval(estimate, unit)
        Units.interval(estimate.low, estimate.high, unit)
      end

      # @return [Hash{Symbol => Object}]
      def estimate(estimate)
        estimate.to_h.except(:windows).merge(low_confidence: estimate.low_confidence?)
      end

      # @return [Hash{Symbol => Object}]
      def site(site)
        { name: site.name, file: site.file, line: site.line, function: site.function }
      end

      # @param holder [MemprofilerPprof::Retainers::Holder]
      # @return [Hash{Symbol => Object}]
      def holder(holder)
        { code: Codes::HOLDER, **holder.to_h, chain: holder.chain.map(&:to_h), example: holder.example.map(&:to_h) }
      end
    end
  end
end
