# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # {Retainers} in words, for people.
    #
    # @api private
    class RetainersText
      # How many holders of a site are shown, and the least share that any but the first must have.
      MOST = 3
      LEAST_SHARE = 0.01
      private_constant :MOST, :LEAST_SHARE

      # What stands in place of a table: a table for Markdown, and lines for a terminal.
      Listing = Struct.new(:table, :sites, :paths, :largest) do
        def columns = table.columns
        def rows = table.rows

        # @param style [Style]
        # @return [Array<String>]
        def lines(style)
          parts = [*sites.map { |site| SiteHolders.new(site, paths) }, largest].map { |part| part.lines(style) }
          parts.reject(&:empty?).flat_map { |lines| ["", *lines] }.drop(1)
        end
      end
      private_constant :Listing

      # The holders of a site that are shown.
      # @param site [MemprofilerPprof::Retainers::Site]
      # @return [Array<MemprofilerPprof::Retainers::Holder>]
      def self.holders(site)
        first, *others = site.holders.first(MOST)
        [first, *others.select { |holder| holder.share >= LEAST_SHARE }].compact
      end

      # @param retainers [MemprofilerPprof::Retainers]
      def initialize(retainers)
        @retainers = retainers
      end

      # @param about [Hash{Symbol => Object}] other members of the section
      # @return [Section]
      def section(**about)
        listing = Listing.new(table, @retainers.sites, paths, largest) if table.rows.any?
        Section.new(title: title, notes: notes, table: listing, closing: (NOTHING if @retainers.sites.empty?), **about)
      end

      NOTHING = "No live samples of such objects: none were allocated since the profiler started, or none was sampled."
      private_constant :NOTHING

      private

      def title
        process = "Process #{@retainers.pid}" if @retainers.pid
        [process || "Who holds what is alive",
         *@retainers.time&.getutc&.strftime("%F %T UTC")].join(", ")
      end

      def notes
        Note.list(Codes::HEAP => heap, Codes::PAUSED => paused, Codes::UNREACHABLE => unreachable,
                  Codes::UNNAMED => unnamed, Codes::ATTACHED => Totals.attached(tags))
      end

      def tags
        @retainers.pprof_data.empty? ? {} : Tags.of(@retainers.profile.comments)
      end

      def heap
        return unless @retainers.objects

        "#{count(@retainers.objects)} objects with #{size(@retainers.bytes)} are reachable, by " \
          "#{count(@retainers.references)} references."
      end

      def paused
        return "In process: held the GVL for #{duration(@retainers.held)}." if @retainers.held
        return unless @retainers.pause

        again = " The first copy of the process gave no answer." if @retainers.attempts.to_i > 1
        "Paused the program for #{duration(@retainers.pause)}; the answer took #{duration(@retainers.elapsed)}.#{again}"
      end

      def unreachable
        found = @retainers.unreachable
        return unless found&.samples&.positive?

        "Unreachable: about #{count(found.objects)} objects with #{size(found.bytes)}, garbage or held by a finalizer."
      end

      def unnamed
        number = @retainers.unnamed_samples
        return unless number&.positive?

        "Left out: #{count(number)} #{number == 1 ? "sample" : "samples"} so new that their lines are not known yet."
      end

      # For Markdown.
      def table
        table = Table.new([["", :right, nil], ["95% INTERVAL", :right, nil], ["objects", :right, nil],
                           ["95% INTERVAL", :right, nil], ["share", :right, nil], ["retains", :right, nil],
                           ["", :left, nil]])
        @retainers.sites.each do |site|
          table.add([*figures(site), "", "", SiteText.label(site, paths)], code: Codes::SITE)
          held(site).each { |code, *cells| table.add([*[""] * 4, *cells], code: code) }
        end
        largest.rows.each do |bytes, share, phrase|
          table.add([bytes, "", "", "", share, "", phrase], code: Codes::LARGEST)
        end
        table
      end

      def largest
        @largest ||= LargestText.new(@retainers)
      end

      # Its holders, and who has the rest: code, share, what is retained, phrase.
      def held(site)
        shown = RetainersText.holders(site)
        holders = shown.map { |one| [Codes::HOLDER, one.share, one.retained ? size(one.retained) : "", one.phrase] }
        rest = SiteRest.new(site, shown.size).parts.map { |part| [part.code, part.share, "", part.phrase] }
        (holders + rest).map { |code, share, retained, phrase| [code, Units.percent(share), retained, "  #{phrase}"] }
      end

      def paths
        @paths ||= SiteText.paths(@retainers.sites)
      end

      def figures(site)
        [size(site.bytes.value), SiteText.interval(site.bytes, "bytes"),
         count(site.objects.value), SiteText.interval(site.objects, "count")]
      end

      def size(value)
        Units.format(value, "bytes")
      end

      def count(value)
        Units.format(value, "count")
      end

      def duration(seconds)
        Units.duration(seconds)
      end
    end
  end
end
