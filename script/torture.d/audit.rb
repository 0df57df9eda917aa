# frozen_string_literal: true

module Torture
  # Compares the witnesses' counts with what ObjectSpace and the herds know. Everything else must stand still.
  class Audit
    def initialize(scene, populations: scene.populations, witnesses: scene.witnesses)
      @scene = scene
      @populations = populations
      @witnesses = witnesses
    end

    # @raise [Wrong]
    def call
      GC.start
      @witnesses.each { |witness| check(witness) }
      check_muted
    end

    private

    def check(witness)
      living = flush_while_still(witness)
      aside = witness.newly_aside.positive?
      check_missed(witness) unless aside
      check_health(witness)
      compare(witness, "retained", living, witness.retained, fewer: aside || witness.newly_missed.positive?)
      return unless witness.ledger?

      allocated = @populations.map(&:allocated).reduce(:merge)
      compare(witness, "allocated", allocated, witness.allocated, fewer: aside)
    end

    def check_missed(witness)
      missed = witness.newly_missed
      return if missed.zero? || @scene.collections_hidden?

      raise Wrong, "#{witness.name} missed #{missed} collections though nothing ran that hides them"
    end

    # Flushes at a moment when no object dies or is born, including finalizers and late allocations.
    def flush_while_still(witness)
      20.times do
        before = living
        GC.disable
        witness.flush
        after = living
        return after if after == before
      ensure
        GC.enable
      end
      raise Wrong, "the number of objects never came to rest"
    end

    def living
      counts = Counted.living
      @populations.map { |population| population.living(counts) }.reduce(:merge)
    end

    def check_health(witness)
      stats = witness.collector.stats
      wrong = stats.slice(:failure, :disarmed, :walker_failure).compact
      wrong[:thinned_samples] = stats[:thinned_samples] if stats[:thinned_samples].positive?
      # What died in a collection that was missed is found out when another object gets its slot, perhaps much later.
      deaths = stats[:missed_deaths]
      wrong[:missed_deaths] = deaths if deaths.positive? && stats[:missed_collections].zero?
      raise Wrong, "#{witness.name} is not well: #{wrong}" if wrong.any?
    end

    # @param fewer [Boolean] whether the collector has reported that its counts are too low
    def compare(witness, what, truth, counts, fewer:)
      wrong = truth.filter_map do |name, count|
        next if counts[name] == count || (fewer && counts[name] < count)

        "#{name} #{counts[name]}, actually #{count}"
      end
      return if wrong.empty?

      raise Wrong, "#{witness.name} (#{witness.collector.stats[:liveness]}) has wrong #{what} counts: " \
                   "#{wrong.join("; ")}\n#{witness.collector.stats}\n#{second_opinions}"
    end

    # Whether that flush, that collector, or all of them failed to see some objects: at birth, or later.
    def second_opinions
      alive = living
      born = @populations.map(&:allocated).reduce(:merge)
      @witnesses.map do |witness|
        witness.flush
        others = witness.retained.except(*alive.keys).max_by(5) { |_, count| count }
        "asked again, #{witness.name} lacks #{missing(alive, witness.retained)} of the living, " \
          "#{missing(born, witness.allocated)} of those ever born, and reports #{others}"
      end.join("\n")
    end

    def missing(truth, counts)
      truth.to_h { |name, count| [name, count - counts[name]] }.reject { |_, less| less.zero? }
    end

    def check_muted
      @witnesses.each do |witness|
        muted = witness.allocated.find { |name, count| name.end_with?("::Muted") && count.positive? }
        raise Wrong, "#{witness.name} reports what was allocated without profiling: #{muted}" if muted
      end
    end
  end
end
