# frozen_string_literal: true

module MemprofilerPprof
  # Checks what users pass. An error names the argument, its value and what is allowed.
  # @api private
  module Argument
    class << self
      # @param name [Symbol, String]
      # @param value [Object]
      # @param allowed [String] in words
      # @param error [Class] of the exception
      # @yieldreturn [Boolean] whether the value is allowed
      # @return [Object] the value
      # @raise [ArgumentError, TypeError]
      def check(name, value, allowed, error = ArgumentError)
        return value if yield

        raise error, "#{name} must be #{allowed}, got #{value.inspect}"
      end

      # @param allowed [Array]
      # @return [Object] the value
      # @raise [ArgumentError]
      def one_of(name, value, allowed)
        check(name, value, "one of #{allowed.map(&:inspect).join(", ")}") { allowed.include?(value) }
      end

      # @param from [Integer] the least that is allowed
      # @return [Integer] the value
      # @raise [ArgumentError, TypeError]
      def integer(name, value, from: 0)
        check(name, value, "an Integer from #{from}", TypeError) { value.is_a?(Integer) }
        check(name, value, "an Integer from #{from}") { value >= from }
      end

      # @return [Integer, nil] the value: how many are shown at most, all if it is nil
      # @raise [ArgumentError]
      def limit(value)
        check(:limit, value, "nil or an Integer in 0..4294967295") do
          value.nil? || (value.is_a?(Integer) && value.between?(0, 4_294_967_295))
        end
      end

      # @return [String] the value
      # @raise [ArgumentError, TypeError]
      def text(name, value)
        check(name, value, "nil or a String", TypeError) { value.is_a?(String) }
        check(name, value, "nil or a String that is not empty") { !value.empty? }
      end

      # @return [Numeric] the value
      # @raise [ArgumentError, TypeError]
      def number(name, value)
        check(name, value, "a number", TypeError) { value.is_a?(Numeric) && value.real? }
        check(name, value, "a finite number from 0") { value >= 0 && value.to_f.finite? }
      end

      # @return [Numeric] the value
      # @raise [ArgumentError, TypeError]
      def seconds(name, value)
        check(name, value, "a number of seconds", TypeError) { value.is_a?(Numeric) && value.real? }
        check(name, value, "a finite number of seconds above 0") { value.positive? && value.to_f.finite? }
      end
    end
  end
end
