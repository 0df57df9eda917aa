# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # What a process allocates per second, and what is alive in it, by site.
    class Activity
      # The figures of a row, in their order, with the names of their values in profiles, their units, their titles, and
      # how early they are left out where there is no room: the highest rank first.
      FIGURES = {
        allocations: [Snapshot::ALLOCATIONS, "count", "ALLOC/S", 11],
        allocated_bytes: [%w[allocations_size alloc_space], "bytes", "BYTES/S", 13],
        objects: [Totals::OBJECTS, "count", "OBJECTS", 12],
        bytes: [Totals::BYTES, "bytes", "RETAINED", 10]
      }.freeze
      # Those that are given per second.
      RATES = %i[allocations allocated_bytes].freeze
      # Fixed widths, so that columns do not move each time that a figure changes.
      FIGURE_WIDTH = 9
      INTERVAL_WIDTH = 20
      private_constant :FIGURES, :RATES, :FIGURE_WIDTH, :INTERVAL_WIDTH

      # The figures that rows can be sorted by.
      ORDERS = FIGURES.keys.freeze
      # What the figures are called in tables.
      TITLES = FIGURES.transform_values { |_, _, title, _| title }.freeze
      # Stands before a figure based on fewer than ten samples.
      LOW_CONFIDENCE = "~"

      # A site and its figures.
      #
      # @!attribute allocations
      #   @return [Profile::Estimate] objects allocated per second
      # @!attribute allocated_bytes
      #   @return [Profile::Estimate] their bytes per second
      # @!attribute objects
      #   @return [Profile::Estimate] objects alive
      # @!attribute bytes
      #   @return [Profile::Estimate] their bytes
      Row = Struct.new(:name, :file, :line, :function, *ORDERS)

      # @param name [Symbol] one of {ORDERS}
      # @param value [Numeric]
      # @return [String] such as "11.2 MiB"
      def self.text(name, value)
        Units.format(value, FIGURES.fetch(name)[1])
      end

      # @return [Array<Row>] those with the most first
      attr_reader :rows
      # @return [Hash{Symbol => Profile::Estimate}] the figures of all sites together
      attr_reader :total

      # @param profile [Profile] of an interval, as `flush` returns it
      # @param by [Symbol] one of Profile::Aggregation::GROUPINGS
      # @param sort [Symbol] one of {ORDERS}
      # @param matching [Regexp, nil] only sites of which the name, file or method matches
      # @param limit [Integer, nil] the most rows
      # @raise [ProfileError] if the profile has not all of these values, or does not say its duration
      # @raise [ArgumentError] if an argument is none of what is allowed
      def initialize(profile, by: :class, sort: :allocations, matching: nil, limit: nil)
        Argument.limit(limit)
        @by = by
        @sort = Argument.one_of(:sort, sort, ORDERS)
        @seconds = seconds(profile)
        raise ProfileError, "the profile does not say how many seconds it covers" unless @seconds.positive?

        @types = types(profile)
        @total = @types.to_h { |figure, type| [figure, estimate(figure, profile.total(type))] }
        rows = sorted(rows_of(profile), matching)
        @rows = limit ? rows.first(limit) : rows
      end

      # @param style [Style]
      # @return [Array<String>] the figures of all sites together
      def summary(style = PLAIN)
        [["Allocates", "objects/s", :allocations, "/s", :allocated_bytes],
         ["Retains", "objects", :objects, "", :bytes]].map do |verb, noun, count, per, bytes|
          text = "#{verb.ljust(9)} #{with_interval(count, " #{noun}")}, #{with_interval(bytes, per)}"
          style.paint(Table.cut(text, text.gsub(/ \([^)]*\)/, ""), width: style.width), nil)
        end
      end

      # @return [Array<String>] the figures of all sites together, in the order of {ORDERS}
      def figures
        FIGURES.map { |name, (_, unit)| figure(@total[name], unit) }
      end

      # @param style [Style]
      # @param range [Range] the numbers of the rows to show
      # @return [Array<String>] a line with titles, and one for each row
      def lines(style = PLAIN, range = 0..)
        shown = rows[range] || []
        table = Table.new([*columns, [@by.upcase.to_s, :left, nil]])
        paths = SiteText.paths(rows)
        shown.each { |row| table.add([*cells(row), SiteText.label(row, paths)]) }
        table.lines(style)
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        { by: @by, sort: @sort, seconds: @seconds, total: @total.transform_values { |each| SiteText.estimate(each) },
          sites: rows.map do |row|
            ORDERS.each_with_object(SiteText.site(row)) { |name, site| site[name] = SiteText.estimate(row[name]) }
          end }
      end

      private

      # Of the profiles of several processes, merged, the durations were added up, too.
      def seconds(profile)
        processes = profile.comments.grep(/\Apid=/).uniq.size
        profile.duration / [processes, 1].max
      end

      def types(profile)
        names = profile.sample_types.map(&:name)
        FIGURES.to_h do |figure, (candidates, *)|
          type = names.find { |name| candidates.include?(name) }
          raise ProfileError, "the profile has no #{candidates.first}" unless type

          [figure, type]
        end
      end

      def rows_of(profile)
        none = Profile::Estimate.of([0, 0.0, 0.0], false)
        rows = Hash.new { |hash, key| hash[key] = Row.new(*key, nil, *[none] * ORDERS.size) }
        @types.each do |figure, type|
          sites = profile.top(by: @by, type: type).reject { |site| site.flat.value.zero? }
          sites.each { |site| add(rows[[site.name, site.file, site.line]], figure, site) }
        end
        rows.values
      end

      def add(row, figure, site)
        row.function ||= site.function
        row[figure] = estimate(figure, site.flat)
      end

      def sorted(rows, matching)
        rows = rows.select { |row| matches?(row, matching) } if matching
        rows.sort_by { |row| [-row[@sort].value, -row.bytes.value, row.name, row.file.to_s] }
      end

      def estimate(figure, estimate)
        return estimate unless RATES.include?(figure)

        value, low, high, samples, variance, windows = *estimate
        Profile::Estimate.new(*[value, low, high].map { |each| each&.fdiv(@seconds) }, samples,
                              variance&.fdiv(@seconds**2), windows&.map { |sum| sum / @seconds }).freeze
      end

      def matches?(row, pattern)
        [row.name, row.file, row.function].compact.any? { |text| pattern.match?(text) }
      end

      # Where there is too little room, intervals are left out first, that of the figure it is sorted by last of them.
      def columns
        FIGURES.flat_map do |figure, (_, _, title, drop_rank)|
          sorted = figure == @sort
          [[(sorted ? "*#{title}" : title).rjust(FIGURE_WIDTH), :right, sorted ? nil : drop_rank],
           ["95% INTERVAL".rjust(INTERVAL_WIDTH), :right, sorted ? 20 : 30]]
        end
      end

      def cells(row)
        FIGURES.flat_map do |figure, (_, unit)|
          estimate = row[figure]
          next ["-", "-"] if estimate.value.zero?

          [figure(estimate, unit), SiteText.interval(estimate, unit)]
        end
      end

      def figure(estimate, unit)
        "#{LOW_CONFIDENCE if estimate.low_confidence?}#{Units.format(estimate.value, unit)}"
      end

      def with_interval(name, per)
        estimate = @total[name]
        unit = FIGURES.fetch(name)[1]
        interval = SiteText.interval(estimate, unit)
        "#{figure(estimate, unit)}#{per}#{" (#{interval})" unless interval.empty?}"
      end
    end
  end
end
