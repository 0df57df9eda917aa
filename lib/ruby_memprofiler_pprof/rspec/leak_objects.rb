# frozen_string_literal: true

module MemprofilerPprof
  module RSpec
    # `leak_objects`: whether each call of a block leaves objects behind that stay.
    #
    # @example
    #   expect { Session.new.close }.not_to leak_objects.of(Session).tolerating(1)
    class LeakObjects
      include ::RSpec::Matchers::Composable

      def initialize
        @options = {}
      end

      # @param type [Module, String] counts only objects of this class and those below it, or of the class of exactly
      #   this name
      # @return [self]
      def of(type)
        with(of: type)
      end

      # @param calls [Integer] how often to call the block before it is watched, from 1; 3 by default
      # @return [self]
      def warm_up(calls)
        with(warm_up: calls)
      end

      # @param calls [Integer] how often to call it at first, from 20. By default 200, 60 or 20 times, by the CPU time
      #   of a call. What grows is followed over more calls
      # @return [self]
      def iterations(calls)
        with(iterations: calls)
      end

      # @param objects [Numeric] how many objects per call may stay, from 0; 0.05 by default
      # @return [self]
      def tolerating(objects)
        with(tolerating: objects)
      end

      # @param block [Proc]
      # @return [Boolean]
      # @raise [ArgumentError, TypeError] naming an option, its value and what is allowed
      # @raise [Error] if not everything could be counted
      def matches?(block)
        raise ArgumentError, "leak_objects needs a block: write expect { … }, not expect(…)" unless block.is_a?(Proc)

        @failure_message_when_negated = nil
        @check = Testing::LeakCheck.new(**@options)
        @check.leak?(&block)
      end

      # @return [String]
      def failure_message
        "expected the block to #{@check}, but #{@check.explain}"
      end

      # @return [String]
      def failure_message_when_negated
        @failure_message_when_negated ||= "expected the block not to #{@check}, but #{@check.explain}"
      end

      # @return [String]
      def description
        Testing::LeakCheck.new(**@options).to_s
      end

      # @return [true]
      def supports_block_expectations?
        true
      end

      # @return [false]
      def supports_value_expectations?
        false
      end

      # @raise [NotImplementedError]
      def and(_other)
        refuse_combination
      end
      alias or and
      alias & and
      alias | and

      # RSpec asks for this where another matcher was combined with this one.
      # @raise [NotImplementedError]
      def expects_call_stack_jump?
        refuse_combination
      end

      private

      def refuse_combination
        raise NotImplementedError, "leak_objects calls the block many times and cannot be combined with other " \
                                   "matchers: write a separate expectation"
      end

      def with(option)
        @options = @options.merge(option)
        self
      end
    end
  end
end
