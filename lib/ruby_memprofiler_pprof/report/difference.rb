# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # What has grown, and shrunk, between two profiles of a process.
    #
    # A sample that is in both cancels out. So the difference of two counts is D = born - died, and its variance is
    # (w - 1)(born + died), w being how many objects a sample stands for, since each object is sampled independently.
    # Profiles do not say which objects survived, but born is at most what the new profile has; if the profiles are
    # consecutive, at most the allocations in the new one; and with gc_age, at most the objects that are as young as the
    # number of collections in between. With that bound, born + died = 2 born - D. Nothing cancels out if the profiles
    # are of different processes.
    #
    # Of bytes, an object that is born or dies is taken to add as much to the variance as the average one of both
    # profiles. If nothing else happened, the variances V of both profiles would then differ by D times that. What is
    # left of V(new) - V(old) is due to survivors that have changed: to those that have grown, for which
    # (b - a)² <= b² - a², and, where samples were thinned out in between, to all, since what was sampled anew with a
    # part of the samples differs from the old sum by V(new) - V(old). So it is added. The sum is V(old) + V(new) at
    # most, as if there were no survivors.
    #
    # Example: 1000 objects before, 1200 after, w = 100, and 300 were allocated in between. D = 200, born <= 300, so
    # born + died <= 400 and the standard error is at most sqrt(99 * 400) = 199; if nothing cancelled out it would be
    # sqrt(99 * 2200) = 467.
    #
    # Objects that were sampled in windows are not sampled independently. Their variance is that of the differences of
    # their sums by group of windows, where what is in both profiles cancels out by itself.
    #
    # The probability that a site has grown is that of a normal variable with such mean and variance to be positive. It
    # is for each site by itself: of a hundred sites that have not grown, about five have more than 95 %. With windows
    # the variable has Student's t distribution, with 15 degrees of freedom if all samples were taken in windows, and
    # more if only some were (Welch, Satterthwaite).
    class Difference
      include View

      # @!attribute old
      #   @return [Profile::Estimate]
      # @!attribute new
      #   @return [Profile::Estimate]
      # @!attribute change
      #   @return [Profile::Estimate]
      # @!attribute probability
      #   @return [Float, nil] that it has grown, 0..1; nil if the profiles do not say how they were sampled
      Change = Struct.new(:name, :file, :line, :function, :old, :new, :change, :probability) do
        # @return [String] whether it has grown or shrunk, if that is no chance: one of {Codes}
        def code
          return Codes::UNCERTAIN if probability.nil? || change.low_confidence? || PERHAPS.cover?(probability)

          change.value.positive? ? Codes::GREW : Codes::SHRANK
        end
      end
      # The probabilities of growth with which the 95 % interval of the change contains 0.
      PERHAPS = (0.025..0.975)
      # The part of the variance that is due to windows below which they make no difference.
      LEAST_PART = 0.001
      COLORS = { Codes::GREW => :red, Codes::SHRANK => :green }.freeze
      private_constant :PERHAPS, :LEAST_PART, :COLORS

      # @param old [Profile]
      # @param new [Profile]
      # @param by [Symbol] one of Profile::Aggregation::GROUPINGS
      # @param type [Symbol, String, Profile::SampleType, nil]
      # @param limit [Integer, nil] the most sites
      # @raise [ArgumentError] if an argument is none of what is allowed
      # @raise [ProfileError] if the profiles have other sample types than each other
      def initialize(old, new, by: :line, type: nil, limit: Top::LIMIT)
        Argument.limit(limit)
        @type = sample_type(new, type)
        @by = by
        # Raises if they cannot be compared.
        @total = new.diff(old).total(@type).value
        @births = Births.new(old, new, by)
        changes = pairs(old, new).values.map { |before, after| change(before, after) }
        changes.reject! { |each| each.change.value.zero? }
        changes.sort_by! { |each| [-each.change.value.abs, each.name] }
        @changes = limit ? changes.first(limit) : changes
      end

      # @return [Array<Change>] those that have changed most first
      attr_reader :changes

      # @return [Boolean] whether what is compared is alive in each profile, rather than what happened in its interval
      # @api private
      def retained?
        (Totals::OBJECTS + Totals::BYTES).include?(@type.name)
      end

      # @param style [Style]
      # @return [String]
      def to_s(style = PLAIN)
        Text.section(section, style)
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        { type: @type.to_h, by: @by, change: @total, findings: @changes.map do |each|
          estimates = %i[old new change].to_h { |name| [name, SiteText.estimate(each[name])] }
          { code: each.code, **SiteText.site(each), **estimates, probability: each.probability }
        end }
      end

      private

      def summary
        nowhere = ", and no change anywhere" if @changes.empty?
        "#{@type.name}: #{Units.format(@total, @type.unit, signed: true)} in all#{nowhere}"
      end

      def table
        table = Table.new([["CHANGE", :right, nil], ["95% INTERVAL", :right, nil], ["GREW", :right, 5],
                           ["OLD", :right, 10], ["95% INTERVAL", :right, 10], ["NEW", :right, 9],
                           ["95% INTERVAL", :right, 9], ["", :left, nil], [@by.upcase.to_s, :left, nil]])
        paths = SiteText.paths(@changes)
        @changes.each { |each| table.add(cells(each, paths), COLORS[each.code], code: each.code) }
        table
      end

      # Pairs of sites, old and new, by name.
      def pairs(old, new)
        pairs = Hash.new { |hash, name| hash[name] = [nil, nil] }
        [old, new].each_with_index do |profile, side|
          profile.top(by: @by, type: @type).each { |site| pairs[Counts.key(site)][side] = site }
        end
        pairs
      end

      def change(before, after)
        site = after || before
        old, new = [before, after].map { |side| side ? side.flat : Profile::Estimate.of([0, 0.0, 0.0], false) }
        estimate = difference(site, old, new)
        Change.new(site.name, site.file, site.line, site.function, old, new, estimate, probability(estimate)).freeze
      end

      def difference(site, old, new)
        change = new.value - old.value
        return Profile::Estimate.of([change], true) unless old.variance && new.variance

        both, variance = independent_variances(site, old, new)
        samples = (old.samples + new.samples) * (both.positive? ? variance / both : 1)
        windows = WindowGroups.subtract(new.windows, old.windows)
        Profile::Estimate.of([change, variance, samples, windows], true)
      end

      # @return [Array(Float, Float)] the variances of what was not sampled in windows: of the sum of two independent
      #   profiles, and of the difference of these
      def independent_variances(site, old, new)
        old, new = [old, new].map { |side| side.variance - side.window_variance }
        [old + new, retained? ? @births.variance(site, old, new) : old + new]
      end

      def probability(estimate)
        return unless estimate.variance
        return estimate.value.positive? ? 1.0 : 0.0 if estimate.variance.zero?

        errors = estimate.value / Math.sqrt(estimate.variance)
        part = estimate.window_variance / estimate.variance
        return 1 - Statistics.normal_tail(errors) if part < LEAST_PART

        1 - Statistics.student_tail(errors, (WindowGroups::COUNT - 1) / (part**2))
      end

      def cells(each, paths)
        estimate = each.change
        sides = [each.old, each.new].flat_map do |side|
          [Units.format(side.value, @type.unit), SiteText.interval(side, @type.unit)]
        end
        [Units.format(estimate.value, @type.unit, signed: true), SiteText.interval(estimate, @type.unit),
         Units.probability(each.probability), *sides, SiteText.note(estimate), SiteText.label(each, paths)]
      end
    end
  end
end
