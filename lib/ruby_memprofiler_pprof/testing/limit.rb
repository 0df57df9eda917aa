# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/testing/report"
require "ruby_memprofiler_pprof/testing/selection"

module MemprofilerPprof
  module Testing
    # What a block may allocate or retain at most. To judge that allocates, too, which is not the business of a check
    # around this one.
    # @api private
    class Limit
      # Values of samples, by what is limited.
      VALUES = {
        allocate: { objects: :allocations, bytes: :allocations_size },
        retain: { objects: :retained_objects, bytes: :retained_size }
      }.freeze

      # @param verb [Symbol] :allocate or :retain
      # @param most [Numeric] from 0
      # @param unit [Symbol] :objects or :bytes
      # @param of [Module, String, nil] see {Selection}
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      def initialize(verb, most, unit, of: nil)
        @verb = verb
        @most = Argument.number(unit, most)
        @unit = unit
        @selection = Selection.new(of)
      end

      # @param measurement [Measurement]
      # @return [Boolean]
      def met?(measurement)
        MemprofilerPprof.without_profiling { actual(measurement) <= @most }
      end

      # @return [String] such as "retain at most 10 objects of Foo"
      def to_s
        "#{@verb} at most #{amount(@most)}#{@selection}"
      end

      # @param measurement [Measurement]
      # @return [String] what it was, where it comes from, and where the profile is now
      def explain(measurement)
        MemprofilerPprof.without_profiling do
          sites = Report.sites(samples(measurement), VALUES.fetch(@verb), by: value)
          "it #{@verb}s #{amount(actual(measurement))}\n\n#{sites}\n\n" \
            "#{Report.saved(measurement.profile(@verb), value)}"
        end
      end

      private

      def actual(measurement)
        samples(measurement).sum { |sample| sample.values.fetch(value) }
      end

      def samples(measurement)
        @selection.of(measurement.samples(@verb))
      end

      def value
        VALUES.fetch(@verb).fetch(@unit)
      end

      # Exact, bytes too: both sides of a failure could look the same otherwise.
      def amount(number)
        Report.objects(number, @unit.to_s.chomp("s"))
      end
    end
  end
end
