# frozen_string_literal: true

require "ruby_memprofiler_pprof/rspec/bound"

module MemprofilerPprof
  module RSpec
    # `retain_at_most` and `allocate_at_most`: how much one call of a block keeps, or allocates. A unit must follow.
    #
    # @example
    #   expect { parse(text) }.to allocate_at_most(100).objects.of(String).and retain_at_most(4096).bytes
    class AtMost < Bound
      # @return [Integer] how often the block is called before
      # @api private
      attr_reader :warm_up_calls

      # @param verb [Symbol] :retain or :allocate
      # @param most [Numeric] from 0
      def initialize(verb, most)
        super()
        @verb = verb
        @most = most
        @unit = nil
        @type = nil
        @warm_up_calls = 0
      end

      # @return [self]
      def objects
        in_unit(:objects)
      end

      # @return [self]
      def bytes
        in_unit(:bytes)
      end

      # @param type [Module, String] counts only objects of this class and those below it, or of the class of exactly
      #   this name; objects, if there is no unit
      # @return [self]
      def of(type)
        @unit ||= :objects
        @type = type
        self
      end

      # @param calls [Integer] how often to call the block before the call that counts; 0 by default
      # @return [self]
      def warm_up(calls)
        @warm_up_calls = Argument.integer(:warm_up, calls)
        self
      end

      # @return [String] such as "retain at most 10 objects of Foo"
      def description
        limit.to_s
      end

      # @return [String] how it is written, such as "retain_at_most(n).objects"
      # @api private
      def form
        "#{@verb}_at_most(n).#{@unit || :objects}"
      end

      # @api private
      def met?(measurement)
        limit.met?(measurement)
      end

      # @api private
      def explain(measurement)
        limit.explain(measurement)
      end

      private

      def in_unit(unit)
        @unit = unit
        self
      end

      def limit
        return Testing::Limit.new(@verb, @most, @unit, of: @type) if @unit

        call = "#{@verb}_at_most(#{@most.inspect})"
        raise ArgumentError, "#{call} needs a unit: write #{call}.objects or #{call}.bytes"
      end
    end
  end
end
