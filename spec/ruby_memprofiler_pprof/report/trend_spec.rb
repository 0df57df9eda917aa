# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

# The examples worked out in the class's documentation.
RSpec.describe MemprofilerPprof::Report::Trend do
  # A sample stands for so little that sampling explains no variation.
  def exact(levels)
    described_class.new(levels.each_index.map(&:to_f), levels, weight: 1e-6, born: levels.last)
  end

  describe "if levels lie on a line" do
    def trend(born, **options)
      described_class.new([0.0, 1.0, 2.0, 3.0, 4.0], [0, 250, 500, 750, 1000], weight: 100.0, born: born, **options)
    end

    it "has the p-value of 11 heads or more in 12 tosses, if 10 samples were born and none died" do
      expect(trend(1000)).to have_attributes(slope: 250.0, rise: 1000.0, p_value: be_within(1e-9).of(13 / 4096.0))
    end

    it "has a greater one, if more may have been born and died" do
      # 17 heads or more in 6/5 (2 * 15 - 10) = 24 tosses.
      tail = [346_104, 134_596, 42_504, 10_626, 2024, 276, 24, 1].sum.fdiv(2**24)
      expect(trend(1500).p_value).to be_within(1e-9).of(tail)
    end

    it "has that of 65 heads or more in 120 tosses, if all were sampled in windows of one group" do
      expect(trend(1000, window_variance: 1000**2).p_value).to be_within(1e-6).of(0.205712)
      expect(trend(1000, window_variance: 5 * (100**2)).p_value).to eq(trend(1000).p_value)
    end
  end

  # The line rises by 4 samples, but the last level is 3 above the first: one of 4 that were born has died.
  it "has the p-value of 5 heads or more in 6 tosses if the last level is below the line" do
    levels = [0, 100, 100, 500, 300]
    trend = described_class.new([0.0, 1.0, 2.0, 3.0, 4.0], levels, weight: 100.0, born: 400, correlated: false)
    expect(trend).to have_attributes(rise: be_within(1e-9).of(400), p_value: be_within(1e-9).of(7 / 64.0))
  end

  describe "if levels scatter" do
    it "has the slope, interval and p-value of Student's t test" do
      trend = exact([0, 2, 1, 3, 4])
      expect(trend.slope).to be_within(1e-9).of(0.9)
      expect(trend.p_value).to be_within(1e-4).of(0.0187)
      expect(trend.interval).to match([be_within(1e-3).of(0.099), be_within(1e-3).of(1.701)])
    end

    it "is less certain if they stay longer on one side of the line" do
      signs = [1, 1, -1, -1, -1, -1, 1, 1] * 2
      levels = signs.each_with_index.map { |sign, index| 10 + (0.5 * index) + sign }
      # The sum of the squared residuals is 16, that of the squared centred times is 340; Student's quantile is 2.1448.
      margin = 2.1448 * Math.sqrt(16 / 14.0 / 340 * 7)
      expect(exact(levels).interval).to match([be_within(1e-4).of(0.5 - margin), be_within(1e-4).of(0.5 + margin)])
    end
  end
end
