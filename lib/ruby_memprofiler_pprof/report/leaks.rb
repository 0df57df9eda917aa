# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Which sites of a process keep growing, according to a series of its profiles. {Growth} and {Trend} describe the
    # tests; their p-values are corrected for the number of sites by Holm's method.
    class Leaks
      # - `:growing`: a leak, or something that will stop growing after the series
      # - `:slowing`: grows, but ever more slowly, as a cache that fills
      # - `:perhaps`: would be growing if it were the only site, but among many it may be chance; or it has grown, but
      #   by too few samples to say whether it still does; or there are too few profiles, or no major garbage collection
      #   among them, so that it may be garbage
      # - `:settled`: grew first, then no more, as a cache that is warm
      # - `:steady`
      # - `:unclear`: fewer than ten samples, or a rise that so few hardly tell from chance
      VERDICTS = %i[growing slowing perhaps settled steady unclear].freeze
      # The probability that any site is called growing in a program in which none grows (the family-wise error rate).
      LEVEL = 0.001
      # The least p-value, for a site alone, at which it is called steady.
      DOUBTFUL = 0.1
      # With fewer profiles no site is called growing.
      LEAST = 8
      private_constant :DOUBTFUL

      # @!attribute verdict
      #   @return [Symbol] one of {VERDICTS}
      # @!attribute probability
      #   @return [Float, nil] that the growth is not chance, corrected for the number of sites, 0..1; nil if there are
      #     too few samples for a test
      # @!attribute growth
      #   @return [Growth]
      Finding = Struct.new(:verdict, :probability, :growth) do
        # @return [String] the verdict as one of {Codes}
        def code
          Codes.const_get(verdict.upcase)
        end
      end

      # @return [Array<Finding>] in the order of the verdicts; of those with the same one, the fastest first
      attr_reader :findings
      # @return [MemoryGrowth] which lines of the ledger of all memory grow
      attr_reader :memory_growth
      # @return [Array<Note>] why no site can be called growing in this series
      # @api private
      attr_reader :notes
      # @return [Array<Note>] that the profile of the process's exit is left out
      # @api private
      attr_reader :exits
      # @return [Integer] how many profiles at the end are left out, since no major garbage collection followed them
      attr_reader :cut

      # @param snapshots [Array<Snapshot>] at least two, of one process, in any order
      # @param by [Symbol] what the snapshots are by
      # @param limit [Integer, nil] the most sites shown
      # @raise [ArgumentError] if they are of several processes, or the limit is not allowed
      def initialize(snapshots, by: :line, limit: Top::LIMIT)
        @snapshots = snapshots.sort_by(&:time)
        @by = by
        @limit = Argument.limit(limit)
        check
        @exits = Note.list(Codes::AT_EXIT => leave_out_exits)
        leave_out_peeks
        @clean = clean
        @memory_growth = MemoryGrowth.new(@snapshots, @clean)
        @cut = 0
        cut_off_the_unproven
        @notes = Note.list(Codes::TOO_FEW_PROFILES => too_few, Codes::NO_MAJOR_COLLECTION => no_major_collection)
        @findings = find
      end

      # @return [Array<Finding>] those called growing
      def growing
        @findings.select { |finding| finding.verdict == :growing }
      end

      # @return [Array<Finding>] all that grow, be it that they will stop, or that it may be chance
      # @api private
      def rising
        shown.select { |finding| %i[growing slowing perhaps].include?(finding.verdict) }
      end

      # @return [Array(Profile::Site, Integer), nil] of the sites that have gained something, but not surely, the one
      #   that most likely grows, and how many bytes; nil if none has
      # @api private
      def gainer
        untold = @findings.select { |finding| %i[perhaps unclear].include?(finding.verdict) }
        untold.select! { |finding| finding.growth.gain.positive? }
        # A single large object may be a great gain by chance, so the surest comes first.
        growth = untold.min_by { |finding| [-(finding.probability || 0), -finding.growth.gain] }&.growth
        [growth.site, growth.gain] if growth
      end

      # @return [Array<String>] why no site can be called growing in this series
      def warnings
        @notes.map(&:text)
      end

      # @param style [Style]
      # @return [String]
      def to_s(style = PLAIN)
        Text.section(section, style)
      end

      # @param data [Hash{Symbol => Object}] what JSON says besides
      # @param holders [Hash{String => MemprofilerPprof::Retainers::Holder}, nil] the main holders, by the name of the
      #   site; nil if nobody asks
      # @param why [Array<Note>] about the holders, and what was selected
      # @param about [Hash{Symbol => Object}] other members of the section
      # @return [Section]
      # @api private
      def section(data: {}, holders: nil, why: [], **about)
        data = { **data, **to_h }
        data[:findings].each { |finding| finding[:holder] = holder(holders[finding[:name]]) } if holders
        LeaksText.new(self, @snapshots, @by, shown, holders || {}).section(why, data: data, **about)
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        first, last = @snapshots.values_at(0, -1)
        { pid: last.totals["pid"], by: @by, profiles: @snapshots.size, left_out: @cut, from: first.time, to: last.time,
          totals: last.totals.to_h, memory: @memory_growth.to_a, counts: @findings.map(&:code).tally,
          findings: shown.map { |finding| to_json_finding(finding) } }
      end

      private

      # All that grow, or did once.
      def shown
        shown = @findings.reject { |finding| %i[steady unclear].include?(finding.verdict) }
        @limit ? shown.first(@limit) : shown
      end

      def to_json_finding(finding)
        growth = finding.growth
        { code: finding.code, **SiteText.site(growth.site), probability: finding.probability,
          growth_bytes_per_second: %i[value low high].zip(growth.rate).to_h,
          retained_bytes: SiteText.estimate(growth.retained), objects: growth.objects, bytes: growth.bytes }
      end

      def holder(holder)
        SiteText.holder(holder) if holder
      end

      def check
        count = @snapshots.size
        processes = @snapshots.map(&:process).uniq
        reject("at least two, got #{count}") if count < 2
        reject("of one process, got #{processes.inspect}") if processes.size > 1
        reject("of different times") if @snapshots.uniq(&:time).size < count
      end

      def reject(reason)
        raise ArgumentError, "snapshots must be #{reason}"
      end

      # What is gone at the exit is no proof that it did not leak.
      #
      # @return [String, nil] a sentence, if there was one
      def leave_out_exits
        others = @snapshots.reject { |snapshot| snapshot.totals.at_exit? }
        return if others.size < 2 || others.size == @snapshots.size

        @snapshots = others
        "Without the profile of the process's exit: what threads, at_exit blocks and variables held may be gone."
      end

      # Those of {Collector#peek}, as from `dump`, end no interval, so they would look like a gap between the others.
      def leave_out_peeks
        flushed = @snapshots.reject { |snapshot| snapshot.duration.zero? }
        @snapshots = flushed if flushed.size >= LEAST
      end

      def too_few
        return if @snapshots.size >= LEAST

        "#{@snapshots.size} profiles are too few to tell a leak from ups and downs: #{LEAST} are needed, 20 are better."
      end

      def no_major_collection
        return if @clean.nil? || @clean.size > 1

        "There was no major garbage collection between these profiles: what grows may be garbage."
      end

      # Which profiles are the first after a major collection.
      def clean
        counts = @snapshots.map { |snapshot| snapshot.totals["major_gc_count"] }
        return if counts.any?(&:nil?)

        counts.each_index.select { |index| index.zero? || counts[index] > counts[index - 1] }
      end

      # Profiles after the last major collection contain garbage that would look like growth.
      def cut_off_the_unproven
        last = @clean&.last
        return if last.nil? || last < Trend::LEAST

        @cut = @snapshots.size - 1 - last
        @snapshots = @snapshots[..last]
      end

      def find
        testable, others = growths.partition(&:testable?)
        adjusted = Statistics.holm(testable.map(&:p_value))
        findings = testable.zip(adjusted).map { |growth, p_value| judge(growth, p_value) }
        findings.concat(others.map { |growth| Finding.new(:unclear, nil, growth).freeze })
        findings.sort_by { |finding| rank(finding) }
      end

      def growths
        contiguous = @snapshots.each_cons(2).all? { |old, new| Births.consecutive?(old, new) }
        keys = @snapshots.flat_map { |snapshot| snapshot.sites.keys }.uniq
        progress = Progress.of(@snapshots, @snapshots.map { |snapshot| snapshot.totals["total_allocated_objects"] })
        keys.map { |key| Growth.new(@snapshots, key, contiguous: contiguous, clean: @clean, progress: progress) }
      end

      def rank(finding)
        growth = finding.growth
        [VERDICTS.index(finding.verdict), finding.probability ? -growth.rate.first : 0, growth.site.name]
      end

      def judge(growth, p_value)
        Finding.new(verdict(growth, p_value), 1 - p_value, growth).freeze
      end

      def verdict(growth, p_value)
        return without_growth(growth, p_value) unless growth.grows?
        return :perhaps if p_value >= LEVEL || @notes.any?

        growth.slowing? ? :slowing : :growing
      end

      def without_growth(growth, p_value)
        return :settled if growth.settled?
        return :steady if growth.p_value >= DOUBTFUL || growth.slowing? || !growth.highest?

        p_value < Growth::SUSPICIOUS ? :perhaps : :unclear
      end
    end
  end
end
