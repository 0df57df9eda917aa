# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # The sites that retain or allocate most.
    class Top
      include View

      # How many sites are shown by default.
      LIMIT = 20

      # @param profile [Profile]
      # @param by [Symbol] one of Profile::Aggregation::GROUPINGS
      # @param type [Symbol, String, Profile::SampleType, nil] a sample type; by default the profile's
      # @param sort [Symbol] one of Profile::Aggregation::ORDERS
      # @param limit [Integer, nil] the most sites
      # @raise [ArgumentError] if an argument is none of what is allowed
      def initialize(profile, by: :method, type: nil, sort: :flat, limit: LIMIT)
        Argument.limit(limit)
        @by = by
        @sort = sort
        @type = sample_type(profile, type)
        @total = profile.total(@type)
        @sites = profile.top(by: by, type: @type, sort: sort)
        @shown = limit ? @sites.first(limit) : @sites
      end

      # @param style [Style]
      # @return [String]
      def to_s(style = PLAIN)
        Text.section(section, style)
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        { type: @type.to_h, by: @by, sort: @sort, total: SiteText.estimate(@total), findings: @shown.map do |site|
          { code: Codes::SITE, **SiteText.site(site), flat: SiteText.estimate(site.flat),
            cumulative: SiteText.estimate(site.cumulative) }
        end }
      end

      private

      def summary
        figure = Units.format(@total.value, @type.unit)
        interval = SiteText.interval(@total, @type.unit)
        "#{@type.name}: #{figure}#{" (95% interval #{interval})" unless interval.empty?}, " \
          "#{@shown.size} of #{@sites.size} by #{@by}"
      end

      # In a narrow terminal the figures that it is not sorted by are left out first.
      def table
        flat, cumulative = @sort == :flat ? [nil, 10] : [10, nil]
        table = Table.new([["FLAT", :right, flat], ["95% INTERVAL", :right, flat], ["", :right, 20],
                           ["CUM", :right, cumulative], ["95% INTERVAL", :right, cumulative], ["", :right, 19],
                           ["", :left, nil], [@by.upcase.to_s, :left, nil]])
        paths = SiteText.paths(@shown)
        @shown.each do |site|
          note = SiteText.note(site[@sort])
          table.add([*figures(site.flat), *figures(site.cumulative), note, SiteText.label(site, paths)],
                    (:dim unless note.empty?), code: Codes::SITE)
        end
        table
      end

      def figures(estimate)
        [Units.format(estimate.value, @type.unit), SiteText.interval(estimate, @type.unit),
         @total.value.zero? ? "" : Units.percent(estimate.value.fdiv(@total.value))]
      end
    end
  end
end
