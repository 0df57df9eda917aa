# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Who holds what is alive, by the line that allocated it.
    class Retainers
      # @param retainers [MemprofilerPprof::Retainers]
      def initialize(retainers)
        @retainers = retainers
      end

      # @param style [Style]
      # @return [String]
      def to_s(style = PLAIN)
        Text.section(section, style)
      end

      # @param data [Hash{Symbol => Object}] what JSON says besides
      # @param about [Hash{Symbol => Object}] other members of the section
      # @return [Section]
      # @api private
      def section(data: {}, **about)
        RetainersText.new(@retainers).section(data: { **data, **to_h }, **about)
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        figures = %i[pid attempts objects bytes references samples unnamed_samples]
        seconds = %i[pause held elapsed].to_h { |name| [:"#{name}_seconds", @retainers.public_send(name)] }
        figures.to_h { |name| [name, @retainers.public_send(name)] }
               .merge(seconds, time: @retainers.time&.to_f, in_process: @retainers.in_process?,
                               unreachable: @retainers.unreachable&.to_h,
                               largest: @retainers.largest.map { |each| to_json_largest(each) },
                               findings: @retainers.sites.map { |site| to_json_finding(site) })
      end

      private

      def to_json_largest(each)
        { code: Codes::LARGEST, **each.to_h, chain: each.chain.map(&:to_h) }
      end

      def to_json_finding(site)
        { code: Codes::SITE, **SiteText.site(site), samples: site.samples, objects: SiteText.estimate(site.objects),
          bytes: SiteText.estimate(site.bytes), classes: site.classes, unreachable_bytes: site.unreachable_bytes,
          holders: site.holders.map { |holder| SiteText.holder(holder) }, other_holders: site.other_holders,
          other_holders_bytes: site.other_holders_bytes }
      end
    end
  end
end
