# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/testing/cost"
require "ruby_memprofiler_pprof/testing/batch_counts"
require "ruby_memprofiler_pprof/testing/measurement"
require "ruby_memprofiler_pprof/testing/report"
require "ruby_memprofiler_pprof/testing/selection"

module MemprofilerPprof
  module Testing
    # Whether a block leaks: whether each call of it leaves objects behind that stay.
    #
    # The block is called in batches, each of which has a collector of its own. Afterwards the survivors of each batch
    # are counted. A leak leaves survivors in all batches, something built once only in the first, and a cache that
    # replaces its entries only in the last.
    #
    # If all batches left something, it may be a cache that is still filling up. Then more batches follow, each twice as
    # long as the one before, until one leaves no more than is tolerated, or there were as many as the block's {Cost}
    # allows. In the latter case it is a leak if some call paths left survivors in all batches at an undiminished rate
    # ({BatchCounts}), unless objects older than the check have died at that rate: then the new ones replaced them.
    # @api private
    class LeakCheck
      # Calls of the block whose objects a collector follows; afterwards, the profile of those that stayed.
      Batch = Struct.new(:calls, :collector, :profile)

      # Objects per call below which it is no leak.
      TOLERATED = 0.05
      # Calls before the first batch.
      WARM_UP = 3
      # How many first batches there are, and how many calls each has at least.
      BATCHES = 5
      LEAST_CALLS = 4
      # Calls after the last batch, whose last result something may still hold (a memoized value, a thread's stack).
      COOL_DOWN = 2
      # If at least this many older objects died per object left behind, they were replaced.
      REPLACED = 0.5
      VALUES = { objects: :retained_objects, bytes: :retained_size }.freeze
      private_constant :Batch, :TOLERATED, :WARM_UP, :BATCHES, :LEAST_CALLS, :COOL_DOWN, :REPLACED, :VALUES

      # @param warm_up [Integer] calls before the first batch, from 1
      # @param iterations [Integer, nil] calls in the first batches together, from 20; nil: 200, 60 or 20,
      #   by their {Cost}
      # @param tolerating [Numeric] objects per call that may stay, from 0
      # @param of [Module, String, nil] see {Selection}
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      def initialize(warm_up: WARM_UP, iterations: nil, tolerating: TOLERATED, of: nil)
        @warm_up = Argument.integer(:warm_up, warm_up, from: 1)
        @iterations = iterations && Argument.integer(:iterations, iterations, from: BATCHES * LEAST_CALLS)
        @tolerated = Argument.number(:tolerating, tolerating)
        @selection = Selection.new(of)
        @cost = Cost.new
        @batches = []
        @others = []
        @older = []
      end

      # @return [Boolean] whether the block leaks
      # @raise [Error] if not everything could be counted
      def leak?(&block)
        @block = block
        @warm_up.times { @cost.measure(1) { MemprofilerPprof.yield_deep(&block) } }
        size = (@iterations || @cost.first_calls) / BATCHES
        BATCHES.times { call_batch(size) }
        suspected = count_survivors.beyond?(@tolerated) && follow_suspicion(size)
        close
        @batches.each { |batch| Measurement.check(batch.collector) }
        # What judging allocates is not the business of a check around this one.
        @leaks = suspected ? MemprofilerPprof.without_profiling { leaks } : {}
        @leaks.any?
      ensure
        close
      end

      # @return [String] such as "leak objects of Foo"
      def to_s
        "leak objects#{@selection}"
      end

      # @return [String] what was found; if a leak, where it comes from, and where the profile is now
      def explain
        MemprofilerPprof.without_profiling { explanation }
      end

      private

      def explanation
        counts = counts(@leaks.any? ? @leaks : sites)
        rates = counts.rates.map { |rate| format("%.3g", rate) }.join(" ")
        basis = "(#{Report.objects(calls, "call")} in #{@batches.size} batches, objects per call: #{rates})"
        return "calls do not keep leaving objects behind #{basis}" if @leaks.empty?

        last = @batches.last
        "each call leaves #{Report.objects(counts.rate)} behind #{basis}\n\n" \
          "the last #{Report.objects(last.calls, "call")} left\n\n" \
          "#{Report.sites(@leaks.values.flat_map(&:last), VALUES, by: VALUES[:objects], calls: last.calls)}\n\n" \
          "#{Report.saved(last.profile, VALUES[:objects])}"
      end

      def call_batch(calls)
        collector = Measurement.collector(track_allocations: false)
        batch = Batch.new(calls, collector)
        @cost.measure(calls) { repeat(calls, collector) { @batches << batch } }
      end

      def cool_down
        collector = Measurement.collector(track_allocations: false)
        repeat(COOL_DOWN, collector) { @others << collector }
      end

      # Yields once the collector has started: from then on it has to be flushed, whatever happens.
      def repeat(calls, collector)
        block = @block
        repeated = lambda do
          while calls.positive?
            block.call
            calls -= 1
          end
        end
        collector.start
        yield
        Measurement.observe(collector, repeated)
      end

      # Counts what is alive, of any class, including the VM's own objects.
      # @return [BatchCounts]
      def count_survivors
        cool_down
        collectors = @batches.map(&:collector)
        Measurement.settle(*collectors, *@others)
        left = collectors.map(&:live_heap_samples_count)
        @older << [calls, GC.stat(:heap_live_slots) - left.sum - @others.sum(&:live_heap_samples_count)]
        BatchCounts.new(@batches.map(&:calls), left)
      end

      # Calls longer and longer batches.
      # @return [Boolean] whether objects were left behind to the end
      def follow_suspicion(size)
        (1..).each do |longer|
          call_batch(size * (2**longer))
          counts = count_survivors
          return false if counts.ended?(@tolerated) || !counts.beyond?(@tolerated)
          return true if longer >= @cost.longer_batches
        end
      end

      # @return [Hash{Array => Array<Array<Sample>>}] by {Sample#site}, what each batch left; empty if it is no leak
      def leaks
        lasting = sites.reject do |_, samples|
          counts = counts({ nil => samples })
          counts.fading? || counts.replaced?
        end
        counts = counts(lasting)
        counts.beyond?(@tolerated) && counts.rates.last > @tolerated && !replacing?(counts) ? lasting : {}
      end

      # @return [Hash{Array => Array<Array<Sample>>}] by {Sample#site}, what each batch left
      def sites
        sites = Hash.new { |hash, site| hash[site] = Array.new(@batches.size) { [] } }
        @batches.each_with_index do |batch, index|
          @selection.of(Sample.all(batch.profile)).each { |sample| sites[sample.site][index] << sample }
        end
        sites
      end

      def counts(sites)
        left = Array.new(@batches.size) do |index|
          sites.each_value.sum { |batches| batches[index].sum { |sample| sample.values.fetch(VALUES[:objects]) } }
        end
        BatchCounts.new(@batches.map(&:calls), left)
      end

      # Whether older objects die as new ones stay. At what rate they die is the Theil-Sen estimator, the median of the
      # slopes between any two counts, which a single outlier does not move.
      def replacing?(counts)
        slopes = @older.combination(2).map do |(calls, older), (more_calls, later)|
          (older - later).fdiv(more_calls - calls)
        end
        slopes.sort[slopes.size / 2] > REPLACED * counts.rate
      end

      # Flushes all collectors, which removes their hooks.
      def close
        @batches.each { |batch| batch.profile ||= batch.collector.flush }
        @others.each(&:flush).clear
      end

      def calls
        @batches.sum(&:calls)
      end
    end
  end
end
