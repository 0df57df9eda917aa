# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # What of a site none of the holders shown holds.
    #
    # @api private
    class SiteRest
      # A share of the site's bytes, and who has it.
      Part = Struct.new(:code, :share, :phrase, keyword_init: true)
      private_constant :Part

      # @param site [MemprofilerPprof::Retainers::Site]
      # @param shown [Integer] how many holders are
      def initialize(site, shown)
        @site = site
        @others = site.holders.drop(shown)
      end

      # @return [Array<Part>]
      def parts
        [others, unreachable].compact
      end

      private

      def others
        number = @others.size + @site.other_holders.to_i
        return unless number.positive?

        Part.new(code: Codes::HOLDER, share: @others.sum(&:share) + share(@site.other_holders_bytes),
                 phrase: number == 1 ? "1 other" : "#{number} others")
      end

      def unreachable
        share = share(@site.unreachable_bytes)
        Part.new(code: Codes::UNREACHABLE, share: share, phrase: "unreachable") if share.positive?
      end

      def share(bytes)
        bytes.to_f.positive? ? bytes.fdiv(@site.bytes.value) : 0.0
      end
    end
  end
end
