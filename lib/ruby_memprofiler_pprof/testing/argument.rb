# frozen_string_literal: true

module MemprofilerPprof
  module Testing
    # Checks what users pass.
    # @api private
    module Argument
      class << self
        # @return [Integer] the value
        # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
        def integer(name, value, from: 0)
          raise TypeError, "#{name} must be an Integer, got #{value.inspect}" unless value.is_a?(Integer)
          raise ArgumentError, "#{name} must be at least #{from}, got #{value}" if value < from

          value
        end

        # @return [Numeric] the value
        # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
        def number(name, value)
          raise TypeError, "#{name} must be a number, got #{value.inspect}" unless value.is_a?(Numeric) && value.real?
          return value if value >= 0 && value.to_f.finite?

          raise ArgumentError, "#{name} must be a finite number from 0, got #{value}"
        end
      end
    end
  end
end
