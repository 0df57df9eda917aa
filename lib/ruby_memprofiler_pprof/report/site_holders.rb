# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # A site and its holders in lines.
    #
    # @api private
    class SiteHolders
      # @param site [MemprofilerPprof::Retainers::Site]
      # @param paths [PathShortener]
      def initialize(site, paths)
        @site = site
        @paths = paths
      end

      # @param style [Style]
      # @return [Array<String>]
      def lines(style)
        @style = style
        shown = RetainersText.holders(@site)
        [@style.paint(headline, :bold), *classes, *shown.flat_map { |holder| holder(holder) }, *rest(shown.size)]
      end

      private

      def headline
        bytes, objects = [[@site.bytes, "bytes"], [@site.objects, "count"]].map do |estimate, unit|
          Units.format(estimate.value, unit)
        end
        interval = SiteText.interval(@site.bytes, "bytes")
        interval = " (#{interval})" unless interval.empty?
        note = ", #{SiteText::LOW_CONFIDENCE}," if @site.bytes.low_confidence?
        label, short = SiteText.label(@site, @paths)
        rest = " in #{objects} objects#{note} allocated at "
        whole = "#{bytes}#{interval}#{rest}#{label}"
        fits?(whole) ? whole : cut(["#{bytes}#{interval}#{rest}#{short}", "#{bytes}#{rest}#{short}"])
      end

      def fits?(text)
        DisplayWidth.of(text) <= @style.width
      end

      def classes
        return if @site.classes.empty? || !@site.bytes.value.positive?

        shares = @site.classes.map { |name, bytes| "#{name} #{Units.percent(bytes.fdiv(@site.bytes.value))}" }
        cut(SiteText.printable("  of class #{shares.join(", ")}"))
      end

      def holder(holder)
        width = holder.chain.map { |link| DisplayWidth.of(texts(link).first) }.max
        [heading(holder), *holder.chain.map { |link| row(texts(link), width, retains(link)) },
         *("      (#{SiteText.printable(holder.folded)} left out)" if holder.folded), *also(holder), *example(holder)]
      end

      def heading(holder)
        alike = " #{Units.format(holder.alike, "count")} alike, such as" if holder.alike.to_i > 1
        others = " (among others)" if holder.exclusive == false && holder.also.empty?
        "  #{Units.percent(holder.share)} held by#{others}#{alike}"
      end

      def also(holder)
        return if holder.also.empty?

        ["    also by", *holder.also.map { |phrase| cut("      #{SiteText.printable(phrase)}") }]
      end

      def row(texts, width, retained)
        return cut(texts) unless retained

        room = [width, @style.width - retained.size - 2].min
        "#{DisplayWidth.ljust(Table.cut(*texts, width: room), room)}  #{retained}"
      end

      def retains(link)
        "retains #{Units.format(link.retained, "bytes")}" if link.retained
      end

      # @return [Array(String, String)] what refers to the object and what that is, with its place; and without
      def texts(link)
        elements = " (#{Units.format(link.elements, "count")})" if link.elements
        place = "  #{@paths.shorten(link.file)}#{":#{link.line}" if link.line}" if link.file
        text = "      #{"#{link.reference} → " if link.reference}#{link.text}#{elements}"
        ["#{text}#{place}", text].map { |each| SiteText.printable(each) }
      end

      def example(holder)
        return if holder.example.empty?

        ["    one of them", *holder.example.map { |link| cut(texts(link)) }]
      end

      def rest(shown)
        SiteRest.new(@site, shown).parts.map do |part|
          "  #{Units.percent(part.share)} #{"held by " if part.code == Codes::HOLDER}#{part.phrase}"
        end
      end

      def cut(text)
        Table.cut(*text, width: @style.width)
      end
    end
  end
end
