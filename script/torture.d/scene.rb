# frozen_string_literal: true

module Torture
  # What the kinds of trouble in a slice share.
  class Scene
    attr_reader :number, :population, :wild, :late, :populations, :witnesses, :interrupted, :estimators

    # @param witnesses [Array<Witness>] those that run from slice to slice
    # @param kinds [Array<Class>] what will run
    def initialize(number, witnesses, kinds, random, liveness)
      @number = number
      @kinds = kinds
      @liveness = liveness
      @interrupted = Witness.new("the interrupted collector", ledger: false, **liveness)
      method = %i[cfp cfp profile_frames].sample(random: random)
      passing = Witness.new("the collector of this slice", **liveness, object_age: random.rand < 0.3, bt_method: method)
      @witnesses = [*witnesses, passing, @interrupted]
      @estimators = Array.new(2) { Estimator.new(random, liveness) }
      @population = Population.new(:"Slice#{number}")
      @wild = Population.new(:"Slice#{number}Wild", exact: false)
      @late = Population.new(:"Slice#{number}Late")
      @populations = [@population, @wild, *(@late if late_known?(kinds))]
    end

    def begin(seconds)
      @deadline = Torture.now + seconds
      @witnesses.each(&:reset)
    end

    def over?
      Torture.now >= @deadline
    end

    # Whether something runs that prevents this Ruby from reporting garbage collections.
    def collections_hidden?
      @kinds.any?(&:hides_collections?)
    end

    # A collector's options for the requested liveness.
    def options(random)
      return @liveness if @liveness.any?

      { liveness: %i[auto freeobj mark_bits].sample(random: random) }
    end

    def audit
      Audit.new(self).call
      living = @populations.map(&:living).reduce(:merge)
      @estimators.each { |estimator| estimator.check(living) }
    end

    # Leaves what runs from slice to slice.
    def end
      @witnesses.last(2).each(&:stop)
      @estimators.each(&:stop)
      [@population, @wild, @late].each(&:drop)
    end

    private

    # What signal handlers and finalizers allocate while an extension is asked for a size is not reported, like what the
    # extension itself allocates then. Objects of an earlier slice are asked, too, until they are collected.
    def late_known?(kinds)
      GC.start
      !kinds.include?(Kinds::HostileExtensions) && !Kinds::HostileExtensions.alive?
    end
  end

  # A collector with a low rate and narrow bounds, which keep changing.
  class Estimator
    RATES = [0.01, 0.05, 0.2, 0.5].freeze

    attr_reader :collector

    def initialize(random, liveness)
      @collector = MemprofilerPprof::Collector.new(sample_rate: RATES.sample(random: random), **liveness,
                                                   max_heap_samples: random.rand(200..20_000),
                                                   seed: random.rand(1 << 32)).start
    end

    # The estimate for all classes together must be close to the truth, and the samples within their bound.
    def check(living)
      profile = Sums.new(@collector.flush.pprof_data)
      truth = living.values.sum
      estimate = profile.retained.values_at(*living.keys).sum
      missed = @collector.stats.values_at(:missed_collections, :stack_ends).any?(&:positive?)
      unless (estimate - truth).abs <= error(truth, profile) || (missed && estimate < truth)
        raise Wrong, "an estimate of #{estimate} for #{truth} objects, off by more than " \
                     "#{error(truth, profile).round}: #{@collector.stats}"
      end
      check_bounds
    end

    def stop
      @collector.stop
      @collector.flush
    end

    private

    # The variance of one object's count is its weight - 1; 8 standard deviations, and the granularity.
    def error(truth, profile)
      weight = profile.comments.filter_map { |comment| comment[/\Agreatest_weight=(.+)/, 1] }.first.to_f
      (8 * Math.sqrt(truth * [weight - 1, 0].max)) + (8 * weight)
    end

    def check_bounds
      # The bound is enforced at a sample.
      samples = @collector.stats[:samples]
      100_000.times { Object.new && (break if @collector.stats[:samples] > samples) }
      stats = @collector.stats
      return if stats[:live_samples] <= @collector.max_heap_samples && stats[:stack_bytes] <= stack_bound

      raise Wrong, "beyond the bounds #{@collector.max_heap_samples} samples, #{@collector.max_stack_bytes} bytes: " \
                   "#{stats}"
    end

    # Approximately.
    def stack_bound
      (@collector.max_stack_bytes * 1.5) + (4 << 20)
    end
  end
end
