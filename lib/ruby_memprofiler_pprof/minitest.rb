# frozen_string_literal: true

require "minitest"
require "ruby_memprofiler_pprof/testing"

module MemprofilerPprof
  # Assertions about memory: `require "ruby_memprofiler_pprof/minitest"`.
  module Minitest
    # The methods that tests have.
    module Assertions
      # Fails if calls of the block leave more and more objects behind.
      #
      # @example
      #   refute_leaks(of: Session) { Session.new.close }
      # @param of [Module, String, nil] counts only objects of this class and those below it, or of the class of exactly
      #   this name
      # @param warm_up [Integer] how often to call the block before it is watched, from 1
      # @param iterations [Integer, nil] how often to call it at first, from 20; nil: 200, 60 or 20 times, by
      #   the CPU time of a call. What grows is followed over more calls
      # @param tolerating [Numeric] how many objects per call may stay, from 0
      # @param message [String, nil] is put in front of the failure's
      # @return [true]
      # @raise [Minitest::Assertion]
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      # @raise [Error] if not everything could be counted
      def refute_leaks(message = nil, of: nil, warm_up: 3, iterations: nil, tolerating: 0.05, &block)
        check = leak_check(message, block, of: of, warm_up: warm_up, iterations: iterations, tolerating: tolerating)
        leaks = check.leak?(&block)
        refute leaks, message(message, "") { "Expected the block not to #{check}, but #{check.explain}" }
      end

      # Fails unless calls of the block leave more and more objects behind. Parameters are as for {#refute_leaks}.
      # @return [true]
      # @raise [Minitest::Assertion]
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      # @raise [Error] if not everything could be counted
      def assert_leaks(message = nil, of: nil, warm_up: 3, iterations: nil, tolerating: 0.05, &block)
        check = leak_check(message, block, of: of, warm_up: warm_up, iterations: iterations, tolerating: tolerating)
        leaks = check.leak?(&block)
        assert leaks, message(message, "") { "Expected the block to #{check}, but #{check.explain}" }
      end

      # Fails if more of what one call of the block allocates is alive after it.
      #
      # @example
      #   assert_retains_at_most(10, of: String) { parse(text) }
      # @param objects [Numeric, nil] how many objects, from 0
      # @param message [String, nil] is put in front of the failure's
      # @param bytes [Numeric, nil] how many bytes, from 0; one of both must be given
      # @param of [Module, String, nil] as for {#refute_leaks}
      # @param warm_up [Integer] how often to call the block before the call that counts
      # @return [true]
      # @raise [Minitest::Assertion]
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      # @raise [Error] if not everything could be counted
      def assert_retains_at_most(objects = nil, message = nil, bytes: nil, of: nil, warm_up: 0, &block)
        assert_at_most(:retain, { objects: objects, bytes: bytes }.compact, message, of, warm_up, &block)
      end

      # Fails if one call of the block allocates more. Parameters are as for {#assert_retains_at_most}.
      # @return [true]
      # @raise [Minitest::Assertion]
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      # @raise [Error] if not everything could be counted
      def assert_allocates_at_most(objects = nil, message = nil, bytes: nil, of: nil, warm_up: 0, &block)
        assert_at_most(:allocate, { objects: objects, bytes: bytes }.compact, message, of, warm_up, &block)
      end

      private

      def leak_check(message, block, **options)
        check_usage(message, block)

        Testing::LeakCheck.new(**options)
      end

      def assert_at_most(verb, limits, message, type, warm_up, &block)
        check_usage(message, block)
        raise ArgumentError, "a number of objects, or bytes:, is needed" if limits.empty?

        limits = limits.map { |unit, most| Testing::Limit.new(verb, most, unit, of: type) }
        measurement = Testing::Measurement.take(warm_up: Argument.integer(:warm_up, warm_up), &block)
        limits.each do |limit|
          assert limit.met?(measurement),
                 message(message, "") { "Expected the block to #{limit}, but #{limit.explain(measurement)}" }
        end
        true
      end

      def check_usage(message, block)
        raise ArgumentError, "a block is needed" unless block
        return unless message.is_a?(Module)

        raise ArgumentError, "the message must not be a class, got #{message.inspect}: write of: #{message.inspect}"
      end
    end
  end
end

Minitest::Assertions.include(MemprofilerPprof::Minitest::Assertions)
