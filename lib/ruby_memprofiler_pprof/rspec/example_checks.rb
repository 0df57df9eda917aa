# frozen_string_literal: true

module MemprofilerPprof
  module RSpec
    # Measures an example, with its hooks, as its metadata asks and as the ranking needs. Before the survivors are
    # counted, instance variables get back the values that they had, and those of `let` are cleared.
    # @api private
    class ExampleChecks
      # The metadata key of examples that are to be measured.
      KEY = :memprofiler_pprof_checks
      # Metadata with limits, and what each limits.
      LIMITS = { retains_at_most: :retain, allocates_at_most: :allocate }.freeze
      # The keys that a limit, and `no_leaks`, may have.
      LIMIT_KEYS = %i[objects bytes of].freeze
      LEAK_KEYS = %i[warm_up iterations tolerating of].freeze
      private_constant :LIMITS, :LIMIT_KEYS, :LEAK_KEYS

      class << self
        # @return [Ranking, nil]
        attr_accessor :ranking

        # @param metadata [Hash] of an example or group
        # @return [Boolean] whether it asks for anything
        def wanted?(metadata)
          [:no_leaks, :memprofiler, *LIMITS.keys].any? { |key| metadata.key?(key) }
        end
      end

      # @param example [RSpec::Core::Example::Procsy]
      # @param group [Object] the example group's instance
      def initialize(example, group)
        @example = example
        @group = group
        @metadata = example.metadata
        @variables = group.instance_variables.to_h { |name| [name, group.instance_variable_get(name)] }
      end

      # Runs the example.
      # @raise [RSpec::Expectations::ExpectationNotMetError]
      # @raise [ArgumentError, TypeError] naming what is wrong with the metadata
      def run
        leak_check = leak_check_wanted
        measure(limits_wanted)
        check_leaks(leak_check) if leak_check && passed?
      end

      private

      def measure(limits)
        measurement = Testing::Measurement.take(cleanup: method(:forget)) { @example.run }
        self.class.ranking&.add(@example, measurement)
        report(measurement) if @metadata[:memprofiler]
        check(limits, measurement) if passed?
      end

      def check(limits, measurement)
        failures = limits.reject { |limit| limit.met?(measurement) }.map do |limit|
          "expected the example to #{limit}, but #{limit.explain(measurement)}"
        end
        fail_example(failures.join("\n\n")) if failures.any?
      end

      def check_leaks(leak_check)
        leaks = leak_check.leak? do
          forget
          @example.run
          # The exception of a later run is set on the example, like that of the first.
          return unless passed?
        end
        fail_example("expected the example not to #{leak_check}, but #{leak_check.explain}") if leaks
      end

      def passed?
        @example.exception.nil? && !@example.pending?
      end

      def fail_example(message)
        # The example's own line as backtrace: any other would be RSpec's or this gem's.
        line = "#{@metadata[:absolute_file_path]}:#{@metadata[:line_number]}"
        raise ::RSpec::Expectations::ExpectationNotMetError, message, [line]
      end

      def forget
        (@group.instance_variables - @variables.keys).each { |name| @group.remove_instance_variable(name) }
        @variables.each { |name, value| @group.instance_variable_set(name, value) }
        # The values of `let`. The hash that holds them is cleared rather than dropped, since the garbage collector may
        # still find a reference to it on the machine stack.
        memoized = @group.instance_variable_get(:@__memoized)
        memoized.instance_variables.each do |name|
          value = memoized.instance_variable_get(name)
          value.clear if value.is_a?(Hash)
        end
      end

      def report(measurement)
        saved = Testing::Report.saved(measurement.profile(:allocate), :retained_size)
        name = "#{@example.location_rerun_argument} #{@example.full_description}"
        ::RSpec.configuration.reporter.message("\n#{name}\n#{saved}")
      end

      def limits_wanted
        LIMITS.flat_map do |key, verb|
          wanted = @metadata[key]
          next [] unless wanted

          options = wanted.is_a?(Hash) ? known(key, wanted, LIMIT_KEYS) : { objects: wanted }
          limits = options.slice(:objects, :bytes)
          raise ArgumentError, "#{key}: a number of objects, or bytes:, is needed" if limits.empty?

          limits.map { |unit, most| Testing::Limit.new(verb, most, unit, of: options[:of]) }
        end
      end

      def leak_check_wanted
        wanted = @metadata[:no_leaks]
        return unless wanted

        Argument.check(:no_leaks, wanted, "true, false or a Hash of options", TypeError) do
          wanted == true || wanted.is_a?(Hash)
        end
        Testing::LeakCheck.new(**(wanted == true ? {} : known(:no_leaks, wanted, LEAK_KEYS)))
      end

      def known(key, options, allowed)
        unknown = options.keys - allowed
        return options if unknown.empty?

        raise ArgumentError, "#{key} has the unknown key #{unknown.first.inspect}, allowed are #{allowed.join(", ")}"
      end
    end
  end
end
