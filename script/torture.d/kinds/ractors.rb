# frozen_string_literal: true

module Torture
  module Kinds
    # Ractors that allocate, collect garbage and die, in children: the collectors may miss collections there.
    class Ractors < Kind
      def self.missing
        "this Ruby has no Ractors" unless defined?(Ractor)
      end

      private

      def step
        count = random.rand(1..4)
        rounds = random.rand(1..4)
        seed = random.rand(1 << 32)
        # Several Rubies crash when a Ractor is created while anything traces allocations.
        Child.run("Ractors", untraced: true) { child(count, rounds, Random.new(seed)) }
        nap(0.3)
      end

      def child(count, rounds, random)
        Warning[:experimental] = false
        scene.witnesses.each(&:after_fork)
        rounds.times do |round|
          population = Population.new(:"Ractors#{round}")
          beside_ractors(count) do
            population.herd(random).grow(500)
            scene.witnesses.sample(random: random).flush
          end
          check(population)
        end
      end

      def beside_ractors(count)
        ractors = Array.new(count) { |number| start(number) }
        yield
        # Ruby 4.0 has no Ractor#take.
        ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      end

      def start(number)
        Ractor.new(number) do |parity|
          kept = Array.new(2000) { |i| i.even? ? "text #{i}" : [i] }
          GC.start if parity.odd?
          kept.map(&:dup).size
        end
      end

      # No dead object may be reported as alive; what is allocated from now on must be known, unless another collection
      # was missed. With Ractors ObjectSpace does not show everything, so the herds have to know.
      def check(population)
        population.herds.each(&:clear)
        GC.start
        # The stack may hold a few.
        check_count(population) { |count, _| count <= 10 }
        return unless scene.witnesses.all? { |witness| witness.collector.running? }

        scene.witnesses.each(&:reset)
        fresh = Population.new(:"#{population.name}Fresh")
        herd = fresh.herd(random, limit: 1000)
        herd.grow(500)
        GC.start
        check_count(fresh) { |count, missed| count <= 1000 && (missed || count >= 500) }
      end

      def check_count(population)
        names = population.living.keys
        scene.witnesses.each do |witness|
          witness.flush
          count = witness.retained.values_at(*names).sum
          next if yield(count, witness.newly_missed.positive?)

          raise Wrong, "#{witness.name} reports #{count} objects of #{population.name}: #{witness.collector.stats}"
        end
      end
    end
  end
end
