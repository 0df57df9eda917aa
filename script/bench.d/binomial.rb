# frozen_string_literal: true

# The exact confidence interval of a proportion, after Clopper and Pearson (1934).
module Binomial
  module_function

  # @param hits [Integer]
  # @param runs [Integer] from 1
  # @return [Array<Float>] the lowest and the highest probability for which the outcome is no rarer than `error`
  def interval(hits, runs, error: 0.05)
    low = hits.zero? ? 0.0 : bisect { |chance| 1 - cumulative(hits - 1, runs, chance) < error / 2 }
    high = hits == runs ? 1.0 : bisect { |chance| cumulative(hits, runs, chance) > error / 2 }
    [low, high]
  end

  # The probability of at most this many hits.
  def cumulative(hits, runs, chance)
    (0..hits).sum { |count| Math.exp(log_probability(count, runs, chance)) }
  end

  def log_probability(hits, runs, chance)
    choose = Math.lgamma(runs + 1).first - Math.lgamma(hits + 1).first - Math.lgamma(runs - hits + 1).first
    choose + (hits * Math.log(chance)) + ((runs - hits) * Math.log(1 - chance))
  end

  # The point at which a block that is true for small numbers becomes false.
  def bisect
    low = 1e-12
    high = 1 - 1e-12
    60.times do
      middle = (low + high) / 2
      yield(middle) ? low = middle : high = middle
    end
    low
  end
end
