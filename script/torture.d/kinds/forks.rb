# frozen_string_literal: true

module Torture
  module Kinds
    # Forks with work in the child, at any moment of the other threads' work, including flushes.
    class Forks < Kind
      private

      def prepare
        @flusher = Thread.new { scene.interrupted.flush until scene.over? }
        @number = 0
      end

      def step
        seed = random.rand(1 << 32)
        generations = random.rand < 0.2 ? 2 : 1
        name = "Child#{scene.number}x#{@number += 1}"
        Child.run(name) { child(name, Random.new(seed), generations) }
        nap(0.2)
      end

      def child(name, random, generations)
        scene.witnesses.each(&:after_fork)
        population = Population.new(name.to_sym)
        work(population, random)
        Child.run("#{name}y") { child("#{name}y", random, generations - 1) } if generations > 1
        populations = [population, *(scene.populations if random.rand < 0.3)]
        check(populations)
      end

      def work(population, random)
        population.herd(random).grow(random.rand(2000))
        threads = Array.new(3) { |i| Thread.new { population.herd(Random.new(i)).grow(200) } }
        scene.witnesses.sample(random: random).flush
        threads.each(&:join)
        GC.compact if random.rand < 0.2
      end

      # Inherited objects were not allocated here.
      def check(populations)
        populations.drop(1).each { |inherited| inherited.define_singleton_method(:allocated) { {} } }
        Audit.new(scene, populations: populations).call
      end

      def finish
        @flusher&.join
      end
    end
  end
end
