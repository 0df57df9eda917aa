# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Where a process uses CPU time, by site, in percent of one processor: with several threads at a time more than 100.
    class CPUActivity
      # The figures that rows can be sorted by, and what they are called in tables.
      TITLES = { flat: "CPU", cumulative: "WITH CALLS" }.freeze
      ORDERS = TITLES.keys.freeze
      FIGURE_WIDTH = 10
      INTERVAL_WIDTH = 12
      private_constant :FIGURE_WIDTH, :INTERVAL_WIDTH

      # @return [Array<Profile::Site>] those with the most first
      attr_reader :rows

      # @param profile [Profile] of CPU time
      # @param by [Symbol] one of Profile::Aggregation::GROUPINGS
      # @param sort [Symbol] one of {ORDERS}
      # @param matching [Regexp, nil] only sites of which the name, file or method matches
      # @raise [ProfileError] if it is none of CPU time, or does not say its duration
      # @raise [ArgumentError] if an argument is none of what is allowed
      def initialize(profile, by: :line, sort: :flat, matching: nil)
        @by = by
        @sort = Argument.one_of(:sort, sort, ORDERS)
        @seconds = profile.duration
        raise ProfileError, "the profile does not say how many seconds it covers" unless @seconds.positive?

        type = profile.sample_types.find { |each| each.unit == "nanoseconds" }
        raise ProfileError, "the profile has no CPU time" unless type

        @total = profile.total(type)
        sites = profile.top(by: by, type: type, sort: sort)
        @rows = matching ? sites.select { |site| matches?(site, matching) } : sites
      end

      # @param style [Style]
      # @return [Array<String>] the figure of all sites together
      def summary(style = PLAIN)
        text = "CPU time of the last #{Units.duration(@seconds)}: #{Units.format(@total.value, "nanoseconds")}, " \
               "#{percent(@total.value)} of a processor"
        [style.paint(Table.cut(text, text, width: style.width), nil)]
      end

      # @param style [Style]
      # @param range [Range] the numbers of the rows to show
      # @return [Array<String>] a line with titles, and one for each row
      def lines(style = PLAIN, range = 0..)
        table = Table.new([*columns, [@by.upcase.to_s, :left, nil]])
        paths = SiteText.paths(rows)
        (rows[range] || []).each { |site| table.add([*cells(site), SiteText.label(site, paths)]) }
        table.lines(style)
      end

      private

      def matches?(site, pattern)
        [site.name, site.file, site.function].compact.any? { |text| pattern.match?(text) }
      end

      # Where there is too little room, the figure that it is not sorted by is left out first.
      def columns
        TITLES.flat_map do |figure, title|
          sorted = figure == @sort
          [[(sorted ? "*#{title}" : title).rjust(FIGURE_WIDTH), :right, sorted ? nil : 20],
           ["95% INTERVAL".rjust(INTERVAL_WIDTH), :right, sorted ? 10 : 20]]
        end
      end

      def cells(site)
        ORDERS.flat_map do |figure|
          estimate = site[figure]
          interval = [estimate.low, estimate.high].map { |value| percent(value) }.join("..") if estimate.low
          ["#{Activity::LOW_CONFIDENCE if estimate.low_confidence?}#{percent(estimate.value)}", interval.to_s]
        end
      end

      def percent(nanoseconds)
        Units.percent(nanoseconds / 1e9 / @seconds)
      end
    end
  end
end
