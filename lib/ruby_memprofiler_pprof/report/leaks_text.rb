# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # {Leaks} in words and a table, for people.
    #
    # @api private
    class LeaksText
      COLORS = { growing: :red, slowing: :yellow, perhaps: :yellow, settled: :green }.freeze
      HOUR = 3600
      SURE = "SURE is of the number of objects, GROWTH/H of their bytes, so its interval may contain 0 all the same."

      def initialize(leaks, snapshots, by, shown, holders)
        @leaks = leaks
        @snapshots = snapshots
        @by = by
        @shown = shown
        @holders = holders
      end

      # @param more [Array<Note>]
      # @param about [Hash{Symbol => Object}] other members of the section
      # @return [Section]
      def section(more, **about)
        memory = MemoryGrowthText.new(@leaks.memory_growth, code: @leaks.growing.any?, gainer: gainer)
        notes = memory.notes + @snapshots.last.totals.notes + @leaks.notes + @leaks.exits + more
        Section.new(title: title, notes: notes, table: (table if @shown.any?), closing: [*sure, rest], **about)
      end

      private

      def gainer
        site, gain = @leaks.gainer
        [SiteText.label(site, SiteText.paths([site])).last, gain] if site
      end

      def title
        times = @snapshots.values_at(0, -1).map { |snapshot| Time.at(snapshot.time).utc.strftime("%F %T") }
        totals = @snapshots.last.totals
        tags = " (#{Tags.format(totals.tags)})" if totals.tags.any?
        process = "Process #{totals["pid"]}#{tags}: " if totals["pid"]
        cut = " (without #{@leaks.cut} after the last major collection)" if @leaks.cut.positive?
        "#{process}#{@snapshots.size} profiles, #{times.join(" to ")} UTC#{cut}"
      end

      def table
        table = Table.new([["VERDICT", :left, nil], ["SURE", :right, nil], ["GROWTH/H", :right, nil],
                           ["95% INTERVAL", :right, nil], ["RETAINED", :right, 10], ["95% INTERVAL", :right, 10],
                           ["", :left, nil], [@by.upcase.to_s, :left, nil]])
        paths = SiteText.paths(@shown.map { |finding| finding.growth.site })
        @shown.each do |finding|
          table.add(cells(finding, paths), COLORS[finding.verdict], code: finding.code)
          add_holder(table, @holders[finding.growth.site.name])
        end
        table
      end

      def add_holder(table, holder)
        return unless holder

        text = "  #{Units.percent(holder.share)} held by #{holder.phrase}"
        retained = ", which retains #{Units.format(holder.retained, "bytes")}" if holder.retained
        table.add_wide(["#{text}#{retained}", text], code: Codes::HOLDER)
      end

      def cells(finding, paths)
        growth = finding.growth
        retained = growth.retained
        rate, *interval = growth.rate.map { |each| each * HOUR }
        sure = Units.probability(finding.probability) unless finding.verdict == :settled
        [finding.verdict.to_s, sure || "", Units.format(rate, "bytes", signed: true),
         Units.interval(*interval, "bytes"), Units.format(retained.value, "bytes"),
         SiteText.interval(retained, "bytes"), SiteText.note(retained), SiteText.label(growth.site, paths)]
      end

      # What explains a row that seems to contradict itself.
      def sure
        SURE if @shown.any? { |finding| finding.verdict != :settled && finding.growth.rate[1] <= 0 }
      end

      def rest
        counts = @leaks.findings.map(&:verdict).tally
        growing = counts.delete(:growing)
        said = "Growing: #{growing || (@leaks.memory_growth.not_objects? ? "no line of code" : "none")}"
        others = Leaks::VERDICTS.filter_map { |verdict| "#{counts[verdict]} #{verdict}" if counts[verdict] }
        "#{[said, *(others.join(", ") if others.any?)].join("; ")}."
      end
    end
  end
end
