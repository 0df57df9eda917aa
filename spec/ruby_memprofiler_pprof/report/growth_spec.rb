# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

# The examples worked out in the class's documentation; the verdicts on whole series are in leaks_spec.
RSpec.describe MemprofilerPprof::Report::Growth do
  # A site with these levels, in samples of 100 objects, where each profile is the first after a major collection.
  def growth(*levels, times: levels.each_index.map { |index| index * 60.0 }, windows: ->(_) {})
    snapshot = Struct.new(:time, :weight, :level, :groups) do
      def sites = {}
      def objects(_name) = level * 100
      def bytes(_name) = level * 4000
      def windows(_name) = groups
    end
    snapshots = times.zip(levels).map { |time, level| snapshot.new(time, 100.0, level, windows.call(level)) }
    described_class.new(snapshots, "a", contiguous: false, clean: levels.each_index.to_a)
  end

  it "is proven by 7 heads in 7 tosses, but not by 6 in 6" do
    expect([growth(0, 2, 5, 7), growth(0, 2, 5, 6)].map(&:proven?)).to eq([true, false])
  end

  it "is not proven by 9 heads in 10 tosses" do
    expect(growth(1, 3, 6, 9)).not_to be_proven
  end

  it "is not proven by 7 samples of one window, but by one of each of 7 groups" do
    together = ->(level) { [level * 100.0] + ([0.0] * 15) }
    apart = ->(level) { Array.new(16) { |group| group < level ? 100.0 : 0.0 } }
    expect([together, apart].map { |windows| growth(0, 2, 5, 7, windows: windows).proven? }).to eq([false, true])
  end

  # The last three quarters are the last 12 of 16 levels, and a level is the mean of three.
  def halves(first, second, **options)
    growth(*[0] * 6, *[first] * 6, *[first + second] * 4, **options)
  end

  it "is slowing if it gained 15 samples, and then 3" do
    expect(halves(15, 3)).to be_slowing
  end

  it "is not slowing if these were sampled in one window" do
    expect(halves(15, 3, windows: ->(level) { [level * 100.0] + ([0.0] * 15) })).not_to be_slowing
  end

  it "is not slowing if the difference may be chance, or is small" do
    # 6 heads in 6 tosses have a probability of 1.6 %; 7 is more than half of 10.
    bent = growth(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 107, 114, 121, 128, 135)
    expect([halves(6, 0), halves(7, 0), bent].map(&:slowing?)).to eq([false, true, false])
  end

  it "is slowing if it stood still in the last quarter only" do
    # A cache of 1,220 that has been full for the last 17 % of the series.
    scatter = [0, 30, -20, 10, -10].cycle
    leak = Array.new(40) { |index| (index * 37) + scatter.next }
    full = leak.map.with_index { |level, index| level - [(index * 37) - 1220, 0].max }
    expect([full, leak].map { |levels| growth(*levels).then { |growth| [growth.grows?, growth.slowing?] } })
      .to eq([[true, true], [true, false]])
  end

  describe "in a series that is thinned" do
    # The remaining times of profiles taken every five minutes for a month.
    times = (0...8640).each_with_object([]) do |index, kept|
      kept << (index * 300.0)
      kept.delete_at(MemprofilerPprof::FileSeries.superfluous(kept)) if kept.size > 100
    end

    define_method(:thinned) do |scatter: [0], &level|
      levels = times.zip(scatter.cycle).map { |time, difference| level.call(time) + difference }
      growth(*levels, times: times)
    end

    it "grows, and does not slow, if it gains a sample in two hours" do
      leak = thinned(scatter: [0, 3, -2, 1, -1]) { |time| 10 + (time / 7200).floor }
      expect([leak.grows?, leak.slowing?]).to eq([true, false])
    end

    it "slows if it gains less and less" do
      expect(thinned { |time| (100 * (1 - Math.exp(-time / 800_000))).round }).to be_slowing
    end

    it "has settled if it grew for a week" do
      cache = thinned { |time| [time / 6048, 100].min.floor }
      expect([cache.grows?, cache.settled?]).to eq([false, true])
    end
  end

  def stopped(rise, *later)
    growth(*[0] * 4, *[rise] * 6, *later)
  end

  it "has settled after 7 samples, but not after 6" do
    expect([stopped(7, *[7] * 6), stopped(6, *[6] * 6)].map(&:settled?)).to eq([true, false])
  end

  it "has not settled if it grew by no more than three standard deviations" do
    # Those are sqrt(6 * 8**2 / 8) = 6.9 and sqrt(6 * 6**2 / 8) = 5.2.
    expect([stopped(20, *[12, 28] * 3), stopped(20, *[14, 26] * 3)].map(&:settled?)).to eq([false, true])
  end
end
