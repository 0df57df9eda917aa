# frozen_string_literal: true

require_relative "../../../spec/support/compiled_extension"

module Torture
  module Kinds
    # Objects of an extension that allocates, raises, switches threads, collects garbage or flushes when asked for their
    # size, and is slow to mark and to free.
    class HostileExtensions < Kind
      KINDS = %i[Allocating Raising Switching Collecting Flushing Huge Marking Deferred].freeze

      def self.missing
        CompiledExtension.missing
      end

      # Whether any of its objects is left.
      def self.alive?
        defined?(::Hostile) && KINDS.any? { |kind| ObjectSpace.each_object(::Hostile.const_get(kind)).any? }
      end

      private

      def prepare
        require CompiledExtension.new("hostile").library
        $collector = MemprofilerPprof::Collector.new(**scene.options(random)).start # rubocop:disable Style/GlobalVars
        own = scene.population
        KINDS.each { |kind| own.add_class(:"Hostile#{kind}", Hostile.const_get(kind)) { |type, _| type.new } }
        # Each of them costs a collection or a flush whenever a collector is flushed.
        @herd = own.herd(random, limit: 12, kinds: KINDS.map { |kind| :"Hostile#{kind}" })
      end

      def step
        herd.grow(3)
        random.rand(50).times { Hostile::Deferred.new && Hostile::Marking.new }
        nap(0.05)
      end

      def finish
        $collector.stop.flush # rubocop:disable Style/GlobalVars
      end
    end
  end
end
