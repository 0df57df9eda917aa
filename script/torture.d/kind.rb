# frozen_string_literal: true

module Torture
  # A kind of trouble, which runs on its own thread during a slice. Its plan depends only on the seed: `random` is its
  # own.
  class Kind
    class << self
      # The kinds in the order of their names, whatever the order of loading.
      def all
        @all.sort_by(&:title)
      end

      def inherited(kind)
        super
        (@all ||= []) << kind
      end

      # "thread_pools" of Torture::Kinds::ThreadPools.
      def title
        name[/\w+\z/].gsub(/(?<!\A)[A-Z]/, '_\0').downcase
      end

      # Why it cannot run here, if it cannot.
      def missing
        nil
      end

      # Whether it prevents this Ruby from reporting garbage collections.
      def hides_collections?
        false
      end
    end

    attr_reader :random, :scene

    def initialize(random, scene)
      @random = random
      @scene = scene
    end

    def run
      prepare
      step until scene.over?
    ensure
      finish
    end

    private

    def prepare; end

    # One piece of trouble, lasting some milliseconds.
    def step
      raise NotImplementedError
    end

    def finish; end

    def herd
      @herd ||= scene.population.herd(random)
    end

    # For what exceptions may end at any moment.
    def wild_herd
      scene.wild.herd(Random.new(random.rand(1 << 32)))
    end

    def nap(most = 0.005)
      sleep(random.rand * most)
    end
  end

  # A file each.
  module Kinds
  end
end
