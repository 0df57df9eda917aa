# frozen_string_literal: true

module MemprofilerPprof
  module RSpec
    # What {AtMost} and {CompoundBound} have in common: they take one measurement and judge it.
    # @api private
    class Bound
      include ::RSpec::Matchers::Composable

      # @param block [Proc]
      # @return [Boolean]
      # @raise [Error] if not everything could be counted
      def matches?(block)
        unless block.is_a?(Proc)
          raise ArgumentError, "#{description.inspect} needs a block: write expect { … }, not expect(…)"
        end

        @failure_message = nil
        @measurement = Testing::Measurement.take(warm_up: warm_up_calls, &block)
        met?(@measurement)
      end

      # @raise [NotImplementedError]
      def does_not_match?(_block)
        raise NotImplementedError, "`expect { … }.not_to #{description}` would pass if the block needed more. " \
                                   "Write what is allowed: `expect { … }.to #{form}`, " \
                                   "or `expect { … }.to leak_objects` for code that should leak"
      end

      # @return [String]
      def failure_message
        @failure_message ||= "expected the block to #{description}, but #{explain(@measurement)}"
      end

      # @return [true]
      def supports_block_expectations?
        true
      end

      # @return [false]
      def supports_value_expectations?
        false
      end

      # @param other [Object] a matcher. With another of this gem, both judge the same call of the block
      # @return [Object] a matcher
      def and(other)
        combine(:and, other) || super
      end
      alias & and

      # @param other [Object] as for {#and}
      # @return [Object] a matcher
      def or(other)
        combine(:or, other) || super
      end
      alias | or

      private

      def combine(operator, other)
        return CompoundBound.new(self, other, operator) if other.is_a?(Bound)
        return if warm_up_calls.zero?

        # RSpec calls the block in the first matcher, and that in the second. So the other one judges each call, not all
        # of them together.
        compound = ::RSpec::Matchers::BuiltIn::Compound
        (operator == :and ? compound::And : compound::Or).new(other, self)
      end
    end

    # Two bounds on the same call of a block, combined by `and` or `or`.
    # @api private
    class CompoundBound < Bound
      def initialize(one, other, operator)
        super()
        @bounds = [one, other]
        @operator = operator
      end

      # @return [Boolean]
      def met?(measurement)
        @bounds.public_send(@operator == :and ? :all? : :any?) { |bound| bound.met?(measurement) }
      end

      # @return [String]
      def explain(measurement)
        @bounds.reject { |bound| bound.met?(measurement) }.map { |bound| bound.explain(measurement) }.join("\n\nand ")
      end

      # @return [String]
      def description
        @bounds.map(&:description).join(" #{@operator} ")
      end

      # @return [String]
      def form
        @bounds.map(&:form).join(".#{@operator} ")
      end

      # @return [Integer]
      def warm_up_calls
        @bounds.map(&:warm_up_calls).max
      end
    end
  end
end
