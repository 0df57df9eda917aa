# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Probability distributions, and a correction for multiple tests.
    #
    # @api private
    module Statistics
      # The relative change at which a continued fraction has converged, and what replaces a 0 in it.
      PRECISION = 1e-12
      TINY = 1e-300

      module_function

      # @return [Float] the probability that a standard normal variable is greater
      def normal_tail(value)
        0.5 * Math.erfc(value / Math.sqrt(2))
      end

      # @return [Float] the probability that a variable with Student's t distribution is greater (Abramowitz and Stegun
      #   26.7.1)
      def student_tail(value, degrees)
        half = 0.5 * incomplete_beta(degrees.fdiv(degrees + (value**2)), degrees / 2.0, 0.5)
        value.positive? ? half : 1 - half
      end

      # @return [Float] the t that a variable with Student's t distribution exceeds with a probability of 2.5 %
      def student_quantile(degrees)
        low = 1.9
        high = 100.0
        60.times do
          middle = (low + high) / 2
          student_tail(middle, degrees) > 0.025 ? low = middle : high = middle
        end
        high
      end

      # @return [Float] the probability that of so many fair coins at least so many show heads (Abramowitz and Stegun
      #   26.5.24, which also holds between whole numbers)
      def binomial_tail(heads, coins)
        return 1.0 if heads <= 0
        return 0.5**coins if heads >= coins

        incomplete_beta(0.5, heads, coins - heads + 1)
      end

      # Holm's step-down correction for multiple tests, which bounds the probability that any of them is significant by
      # chance (Holm, A simple sequentially rejective multiple test procedure, 1979). For example, 0.01, 0.03 and 0.04
      # become 3 * 0.01 = 0.03, 2 * 0.03 = 0.06 and, since they must not fall, 0.06.
      #
      # @param values [Array<Float>] p-values
      # @return [Array<Float>] the adjusted ones, in the same order
      def holm(values)
        greatest = 0.0
        order = values.each_index.sort_by { |index| values[index] }
        order.each_with_index.with_object(values.dup) do |(index, rank), adjusted|
          greatest = [greatest, values[index] * (values.size - rank)].max
          adjusted[index] = [greatest, 1.0].min
        end
      end

      # The regularized incomplete beta function I_x(a, b), by Lentz's method (Press et al., Numerical Recipes, 6.4).
      def incomplete_beta(x, a, b) # rubocop:disable Naming/MethodParameterName
        return x.clamp(0, 1).to_f if x <= 0 || x >= 1
        return 1 - incomplete_beta(1 - x, b, a) if x > (a + 1.0) / (a + b + 2)

        Math.exp((a * Math.log(x)) + (b * Math.log(1 - x)) - log_beta(a, b)) * fraction(x, a, b) / a
      end

      # The logarithm of the complete beta function.
      def log_beta(*parameters)
        parameters.sum { |each| log_gamma(each) } - log_gamma(parameters.sum)
      end

      def log_gamma(value)
        Math.lgamma(value).first
      end

      def fraction(x, a, b) # rubocop:disable Naming/MethodParameterName
        numerator = 1.0
        inverse = value = 1 / away_from_zero(1 - ((a + b) * x / (a + 1.0)))
        1.upto(10_000) do |step|
          previous = value
          coefficients(step, x, a, b).each do |coefficient|
            inverse = 1 / away_from_zero(1 + (coefficient * inverse))
            numerator = away_from_zero(1 + (coefficient / numerator))
            value *= inverse * numerator
          end
          break if ((value / previous) - 1).abs < PRECISION
        end
        value
      end

      def coefficients(step, x, a, b) # rubocop:disable Naming/MethodParameterName
        at = a + (2 * step)
        [step * (b - step) * x / ((at - 1) * at), -(a + step) * (a + b + step) * x / (at * (at + 1))]
      end

      def away_from_zero(value)
        value.abs < TINY ? TINY : value
      end
    end
  end
end
