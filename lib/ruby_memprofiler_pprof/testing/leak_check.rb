# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing/argument"
require "ruby_memprofiler_pprof/testing/growth"
require "ruby_memprofiler_pprof/testing/measurement"
require "ruby_memprofiler_pprof/testing/report"
require "ruby_memprofiler_pprof/testing/selection"

module MemprofilerPprof
  module Testing
    # Whether a block leaks: whether each call of it leaves objects behind that stay.
    #
    # The block is called in batches, and each batch's objects are followed by a collector of their own. Afterwards it
    # is counted what is alive of each batch. A leak shows in all of them. What is built once shows in the first; a
    # cache that replaces its entries, in the last; neither in all.
    #
    # If all batches left something, it may be a cache that is still filling up. Then the calls go on, each batch twice
    # as long as the one before, until a batch leaves nothing worth mentioning, or the calls or the time are used up. In
    # the latter case it is a leak if there are places that allocated as much of what stays in all batches ({Growth}),
    # unless objects older than the check have died at that rate: then the new ones replaced them.
    # @api private
    class LeakCheck
      # Calls of the block whose objects a collector follows; afterwards, the profile of those that stayed.
      Batch = Struct.new(:calls, :collector, :profile)

      # Objects per call below which it is no leak.
      TOLERATED = 0.05
      # Calls before the first batch.
      WARM_UP = 3
      # Calls in the first batches together, of cheap blocks.
      ITERATIONS = 200
      # How many first batches there are, and how many calls each has at least.
      BATCHES = 5
      LEAST_CALLS = 4
      # Seconds that the calls of the first batches may take if their number is not given; and those of the longer ones.
      FIRST_SECONDS = 0.25
      SECONDS = 2.0
      # How many times as many calls as in the first batches are made if something is suspected.
      PERSISTENCE = 100
      # How many longer batches there are at least.
      LONGER_BATCHES = 2
      # Calls after the last batch, whose objects may still be in use by something that keeps the last result.
      COOL_DOWN = 2
      # If so many older objects died for each that was left behind, they were replaced.
      REPLACED = 0.5
      VALUES = { objects: :retained_objects, bytes: :retained_size }.freeze
      private_constant :Batch, :TOLERATED, :WARM_UP, :ITERATIONS, :BATCHES, :LEAST_CALLS, :FIRST_SECONDS, :SECONDS,
                       :PERSISTENCE, :LONGER_BATCHES, :COOL_DOWN, :REPLACED, :VALUES

      # @param warm_up [Integer] calls before the first batch, from 1
      # @param iterations [Integer, nil] calls in the first batches together, from 20; nil: 200, or as many as take
      #   0.25 s
      # @param tolerating [Numeric] objects per call that may stay, from 0
      # @param of [Module, String, nil] see {Selection}
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      def initialize(warm_up: WARM_UP, iterations: nil, tolerating: TOLERATED, of: nil)
        @warm_up = Argument.integer(:warm_up, warm_up, from: 1)
        @iterations = iterations && Argument.integer(:iterations, iterations, from: BATCHES * LEAST_CALLS)
        @tolerated = Argument.number(:tolerating, tolerating)
        @selection = Selection.new(of)
        @batches = []
        @others = []
        @older = []
      end

      # @return [Boolean] whether the block leaks
      # @raise [Error] if not everything could be counted
      def leak?(&block)
        @block = block
        size = batch_size(warm_up)
        BATCHES.times { call_batch(size) }
        suspected = look.beyond?(@tolerated) && follow_suspicion(size)
        close
        @batches.each { |batch| Measurement.check(batch.collector) }
        @leaks = suspected ? leaks : {}
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
        growth = growth(@leaks.any? ? @leaks : sites)
        rates = growth.rates.map { |rate| format("%.3g", rate) }.join(" ")
        basis = "(#{Report.objects(calls, "call")} in #{@batches.size} batches, objects per call: #{rates})"
        return "calls do not go on leaving objects behind #{basis}" if @leaks.empty?

        last = @batches.last
        "each call leaves #{Report.objects(growth.rate)} behind #{basis}\n\n" \
          "the last #{Report.objects(last.calls, "call")} left\n\n" \
          "#{Report.sites(@leaks.values.flat_map(&:last), VALUES, by: VALUES[:objects], calls: last.calls)}\n\n" \
          "#{Report.saved(last.profile, VALUES[:objects])}"
      end

      private

      # @return [Float] how long a call took at the least, in seconds
      def warm_up
        Array.new(@warm_up) { seconds { MemprofilerPprof.yield_deep(&@block) } }.min
      end

      def batch_size(duration)
        calls = @iterations || (FIRST_SECONDS / [duration, 1e-9].max)
        (calls / BATCHES).floor.clamp(LEAST_CALLS, @iterations ? calls : ITERATIONS / BATCHES)
      end

      def call_batch(calls)
        collector = Measurement.collector(track_allocations: false)
        batch = Batch.new(calls, collector)
        repeat(calls, collector) { @batches << batch }
      end

      def cool_down
        collector = Measurement.collector(track_allocations: false)
        repeat(COOL_DOWN, collector) { @others << collector }
      end

      # Yields once the collector has started: whatever happens then, it is to be flushed.
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

      # Counts what is alive, of whatever class, the VM's own objects among it.
      # @return [Growth]
      def look
        cool_down
        collectors = @batches.map(&:collector)
        Measurement.settle(*collectors, *@others)
        left = collectors.map(&:live_heap_samples_count)
        @older << [calls, GC.stat(:heap_live_slots) - left.sum - @others.sum(&:live_heap_samples_count)]
        Growth.new(@batches.map(&:calls), left)
      end

      # @return [Boolean] whether something goes on to stay
      def follow_suspicion(size)
        most = calls * PERSISTENCE
        patience = SECONDS
        (1..).each do |longer|
          # Without the time for looking: however slow the GC is, the calls are to be many enough.
          duration = seconds { call_batch(size * (2**longer)) }
          patience -= duration
          growth = look
          return false if growth.ended?(@tolerated) || !growth.beyond?(@tolerated)
          # The next one would take twice as long.
          return true if longer >= LONGER_BATCHES && (calls >= most || patience < 2 * duration)
        end
      end

      # @return [Hash{Array => Array<Array<Sample>>}] by class and stack, what each batch left; empty if it is no leak
      def leaks
        lasting = sites.reject do |_, samples|
          growth = growth({ nil => samples })
          growth.fading? || growth.replaced?
        end
        growth = growth(lasting)
        growth.beyond?(@tolerated) && growth.rates.last > @tolerated && !replacing?(growth) ? lasting : {}
      end

      # @return [Hash{Array => Array<Array<Sample>>}] by class and stack, what each batch left
      def sites
        sites = Hash.new { |hash, site| hash[site] = Array.new(@batches.size) { [] } }
        @batches.each_with_index do |batch, index|
          @selection.of(Sample.all(batch.profile)).each do |sample|
            sites[[sample.class_name, sample.frames]][index] << sample
          end
        end
        sites
      end

      def growth(sites)
        left = Array.new(@batches.size) do |index|
          sites.each_value.sum { |batches| batches[index].sum { |sample| sample.values.fetch(VALUES[:objects]) } }
        end
        Growth.new(@batches.map(&:calls), left)
      end

      # By the median of the slopes between any two looks, which a single odd look does not move (Theil and Sen).
      def replacing?(growth)
        slopes = @older.combination(2).map do |(calls, older), (more_calls, later)|
          (older - later).fdiv(more_calls - calls)
        end
        slopes.sort[slopes.size / 2] > REPLACED * growth.rate
      end

      # Flushes all collectors, which removes their hooks.
      def close
        @batches.each { |batch| batch.profile ||= batch.collector.flush }
        @others.each(&:flush).clear
      end

      def calls
        @batches.sum(&:calls)
      end

      def seconds
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        yield
        Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
      end
    end
  end
end
