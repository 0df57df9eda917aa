# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe MemprofilerPprof::Report::Difference do
  def profile(lines, **options)
    Pprof::Maker.lines(lines, **options).profile
  end

  def change(old, new)
    described_class.new(old, new, type: :retained_objects).changes.first
  end

  # Preceded by a gap, so that its allocations say nothing about the time since.
  def later(lines, **options)
    profile(lines, time: 1_000_000_100, **options)
  end

  def next_one(lines, **options)
    profile(lines, time: 1_000_000_010, **options)
  end

  let(:old) { profile({ "/a.rb:1" => [0, 1000] }) }

  it "ranks by the size of the change" do
    before = profile({ "/a.rb:1" => [0, 50], "/a.rb:2" => [0, 500], "/a.rb:3" => [0, 70] })
    after = later({ "/a.rb:1" => [0, 60], "/a.rb:2" => [0, 100], "/a.rb:4" => [0, 300], "/a.rb:3" => [0, 70] })
    expect(described_class.new(before, after, by: :line).changes.map { |each| [each.name, each.change.value] })
      .to eq([["/a.rb:2", -40_000], ["/a.rb:4", 30_000], ["/a.rb:1", 1000]])
  end

  it "assumes no survivors if they are unknown" do
    expect(change(old, later({ "/a.rb:1" => [500, 1500] })).change.variance).to be_within(1e-6).of(9 * 2500)
  end

  it "cancels out survivors by what was allocated since" do
    expect(change(old, next_one({ "/a.rb:1" => [600, 1500] })).change.variance).to be_within(1e-6).of(9 * 700)
  end

  it "has the standard errors of the example in its documentation" do
    before = profile({ "/a.rb:1" => [0, 1000] }, weight: 100)
    errors = [next_one({ "/a.rb:1" => [300, 1200] }, weight: 100), later({ "/a.rb:1" => [300, 1200] }, weight: 100)]
             .map { |after| Math.sqrt(change(before, after).change.variance).round }
    expect(errors).to eq([199, 467])
  end

  it "cancels out survivors by their ages" do
    before = profile({ "/a.rb:1" => [0, 1000] }, comments: { minor_gc_count: 10, major_gc_count: 2 })
    comments = { minor_gc_count: 14, major_gc_count: 2 }
    after = Pprof::Maker.lines({ "/a.rb:1" => [0, 1000] }, time: 1_000_000_100, comments: comments, age: 8)
                        .sample(["a#line1 /a.rb:1"], [0, 0, 500, 50_000], age: 2).profile
    expect(change(before, after).change.variance).to be_within(1e-6).of(9 * 500)
  end

  it "cancels out nothing by ages in the reverse order" do
    old, new = [[14, 1500], [10, 1000]].map do |collections, count|
      profile({ "/a.rb:1" => [0, count] }, comments: { minor_gc_count: collections, major_gc_count: 2 }, age: 8)
    end
    expect(change(old, new).change.variance).to be_within(1e-6).of(9 * 2500)
  end

  it "takes no allocations for those since an old profile that is not the one before" do
    # The interval of 0.2 s began 0.2 s after the old profile.
    skipped = profile({ "/a.rb:1" => [200, 1200] }, time: 1_000_000_000.4r, duration: 0.2r)
    expect(change(old, skipped).change.variance).to be_within(1e-6).of(9 * 2200)
  end

  it "takes the allocations of a short interval for those since the profile before" do
    after = profile({ "/a.rb:1" => [200, 1200] }, time: 1_000_000_000.24r, duration: 0.2r)
    expect(change(old, after).change.variance).to be_within(1e-6).of(9 * 200)
  end

  it "cancels out nothing of another process" do
    old = profile({ "/a.rb:1" => [0, 1000] }, comments: { pid: 7, started_at: 1 })
    variances = [[7, 1], [7, 2], [8, 1]].map do |pid, start|
      new = next_one({ "/a.rb:1" => [600, 1500] }, comments: { pid: pid, started_at: start })
      change(old, new).change.variance
    end
    expect(variances).to match([be_within(1e-6).of(9 * 700), *[be_within(1e-6).of(9 * 2500)] * 2])
  end

  describe "of survivors that have changed" do
    # 1000 objects of that size.
    def survivors(size, time, **options)
      maker = Pprof::Maker.new(time: time, duration: 10, **options)
      maker.sample(["a /a.rb:1"], [0, 0, 1000, 1000 * size]).sample(["b /a.rb:2"], [10, 1000, 10, 1000]).profile
    end

    let(:pair) { [survivors(100, 1_000_000_000), survivors(200, 1_000_000_010)] }

    it "adds by how much their squares have grown" do
      # If each of 100 samples has grown from 100 to 200 bytes, and nothing else is known: 10 * 9 * 100 (200² - 100²).
      grown = described_class.new(*pair, type: :retained_size).changes.first
      expect(grown).to have_attributes(name: "/a.rb:1", change: have_attributes(value: 100_000, low_confidence?: false))
      expect(grown.change.variance).to be_within(1).of(9 * 1000 * ((200**2) - (100**2)))
    end

    it "adds as much if they have shrunk" do
      shrunk = described_class.new(survivors(200, 1_000_000_000), survivors(100, 1_000_000_010), type: :retained_size)
      expect(shrunk.changes.first.change.variance).to be_within(1).of(9 * 1000 * ((200**2) - (100**2)))
    end

    it "is not certain by a few of them" do
      sizes = [100, 200_000]
      few = sizes.map.with_index do |size, index|
        Pprof::Maker.new(time: 1_000_000_000 + (index * 10), duration: 10)
                    .sample(["a /a.rb:1"], [0, 0, 20, 20 * size]).sample(["b /a.rb:2"], [10, 1000, 10, 1000]).profile
      end
      expect(described_class.new(*few, type: :retained_size).changes.first.code).to eq("UNCERTAIN")
    end

    it "knows how uncertain those are of which a part was drawn when samples were thinned out" do
      # Half of the samples were dropped, and the others count twice: (20 - 10) * 1000, and 19 * 20 of the born ones.
      thinned = next_one({ "/a.rb:1" => [20, 1020] }, weight: 20)
      expect(change(old, thinned).change.variance).to be_within(1e-6).of(10_380)
    end
  end

  it "has the probability of growth" do
    # 40 more, with a standard error of sqrt(9 * 40).
    expect(change(old, next_one({ "/a.rb:1" => [40, 1040] })).probability).to be_within(1e-4).of(0.98248)
    fewer = next_one({ "/a.rb:1" => [0, 960], "/a.rb:2" => [5, 5] })
    expect(change(old, fewer).probability).to be_within(1e-4).of(1 - 0.98248)
  end

  describe "of what was sampled in windows" do
    def windows(some)
      Array.new(16) { |group| some.fetch(group, 0) }
    end

    # 1000 objects of two groups.
    let(:old) { profile({ "/a.rb:1" => [0, 1000] }, windows: windows(1 => 4, 2 => 6)) }

    it "cancels out survivors by their groups, whatever else was allocated" do
      new = later({ "/a.rb:1" => [4400, 1100] }, windows: windows(1 => 4, 2 => 6, 5 => 1))
      expect(change(old, new).change).to have_attributes(value: 100, variance: be_within(1e-6).of(100**2),
                                                         high: be_within(1e-6).of(313.1))
    end

    it "has the probability of Student's t test" do
      # 160 more, with a standard error of sqrt(16/15 (8 (20 - 10)² + 8 (0 - 10)²)) = 41.3. That is t = 3.873 with 15
      # degrees of freedom.
      old = profile({ "/a.rb:1" => [0, 1600] }, windows: [1] * 16)
      new = [profile({ "/a.rb:1" => [0, 1600] }, windows: [1] * 16),
             profile({ "/a.rb:1" => [0, 160] }, windows: [1, 0] * 8)]
      expect(change(old, new.first.merge(new.last)).probability).to be_within(1e-5).of(0.999249)
    end

    it "has more degrees of freedom if only some were" do
      # 340 more: 160 with a variance of 16/15 (2 80² - 160²/16) = 11,947, and 180 with one of 9 * 180 = 1620. That is
      # t = 2.919 with 15 / 0.8806² = 19.34 degrees of freedom.
      none = profile({ "/b.rb:1" => [0, 10] })
      new = later({ "/a.rb:1" => [0, 160] }, windows: windows(0 => 1, 1 => 1)).merge(later({ "/a.rb:1" => [0, 180] }))
      expect(change(none, new).probability).to be_within(1e-5).of(0.995656)
    end
  end

  it "returns nil for what is unknown" do
    unknown = [1000, 1100].map { |count| Pprof::Maker.lines({ "/a.rb:1" => [0, count] }, weight: "?").profile }
    expect(change(*unknown)).to have_attributes(probability: nil, change: have_attributes(value: 100, low: nil))
  end

  it "refuses profiles that cannot be compared" do
    expect { described_class.new(old, old, type: :foo) }.to raise_error(ArgumentError, /type must be one of/)
    expect { described_class.new(old, old, by: :foo) }.to raise_error(ArgumentError, /by must be one of/)
  end
end
