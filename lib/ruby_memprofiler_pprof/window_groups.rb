# frozen_string_literal: true

module MemprofilerPprof
  # What was sampled in windows is added up by group of windows, since samples of one window come together: they say
  # less about the error of a sum than as many independent ones.
  #
  # Each window is in one of G = 16 groups, at random. So the sums T_g of the groups are independent and equally
  # distributed. If T is their sum, its variance is G times that of one of them, estimated by
  # G / (G - 1) sum((T_g - T / G)²). Since that rests on no more than G sums, 95 % of the errors are within 2.131
  # standard errors (Student's t with 15 degrees of freedom).
  #
  # Example: 30 samples that stand for 100 objects each are 3000 objects. If they are all of one window, the variance
  # is 3000², and the interval is 3000 - 6393 to 3000 + 6393. If there are two in each of 15 groups, it is
  # 16/15 (15 (200 - 187.5)² + 187.5²) = 40,000, and the interval is 3000 - 426 to 3000 + 426.
  #
  # @api private
  module WindowGroups
    COUNT = 16
    # How many standard errors are half of a 95 % interval.
    T = 2.131

    module_function

    # @param sums [Array<Float>, nil] one per group; nil if nothing was sampled in windows
    # @return [Float] the estimated variance of their sum
    def variance(sums)
      return 0.0 unless sums

      mean = sums.sum / COUNT
      sums.sum { |sum| (sum - mean)**2 } * COUNT / (COUNT - 1)
    end

    # @return [Array<Float>, nil] the sums of both
    def add(one, other)
      return one || other unless one && other

      one.zip(other).map(&:sum)
    end

    # What is in both cancels out.
    #
    # @return [Array<Float>, nil]
    def subtract(new, old)
      add(new, old&.map(&:-@))
    end
  end
  private_constant :WindowGroups
end
