# frozen_string_literal: true

# Estimates of what was sampled in windows.
RSpec.describe MemprofilerPprof.const_get(:WindowGroups) do
  # Shares of the 16 groups, given by number.
  def shares(some)
    Array.new(16) { |group| some.fetch(group, 0) }
  end

  def profile(count, some, line: "/a.rb:1", weight: 100)
    Pprof::Maker.lines({ line => [0, count] }, windows: some && shares(some), weight: weight).profile
  end

  def objects(profile)
    profile.total(:retained_objects)
  end

  it "has the intervals of the examples in its documentation" do
    one = objects(profile(3000, { 7 => 1 }))
    expect(one).to have_attributes(variance: 3000.0**2, low: 0, high: be_within(0.5).of(9393), samples: 30.0)
    even = objects(profile(3000, (0..14).to_h { |group| [group, 1] }))
    expect(even).to have_attributes(variance: be_within(1e-6).of(40_000), low: be_within(0.5).of(2574),
                                    high: be_within(0.5).of(3426))
  end

  it "has the variance w² for one sample of weight w" do
    expect(objects(profile(100, { 3 => 1 })).variance).to be_within(1e-6).of(100**2)
  end

  it "has bytes by the same groups" do
    bytes = profile(3000, { 2 => 1, 9 => 2 }).total(:retained_size)
    expect(bytes.windows.values_at(2, 9)).to eq([100_000.0, 200_000.0])
  end

  it "adds the variance of what was not sampled in windows" do
    both = profile(300, { 0 => 1 }).merge(profile(500, nil))
    expect(both.samples.size).to eq(1)
    margin = Math.sqrt(((2.131 * 300)**2) + ((1.96**2) * 500 * 99))
    expect(objects(both)).to have_attributes(variance: be_within(1e-6).of((300**2) + (500 * 99)),
                                             high: be_within(1e-6).of(800 + margin))
  end

  it "adds up sites, calls and merged profiles by group" do
    # Each group has 100 objects, half of them in one place.
    sites = [(0..7), (8..15)].each_with_index.map do |groups, index|
      profile(800, groups.to_h { |group| [group, 1] }, line: "/a.rb:#{index + 1}")
    end
    merged = sites.first.merge(sites.last)
    expect(merged.top(by: :line, type: :retained_objects).map { |site| site.flat.variance.round })
      .to eq([42_667] * 2)
    expect([objects(merged), merged.tree(type: :retained_objects).cumulative,
            *merged.top(by: :file, type: :retained_objects).map(&:flat)])
      .to all have_attributes(value: 1600, variance: 0.0)
  end

  it "cancels out what both profiles of a difference have" do
    old = profile(1000, { 1 => 4, 2 => 6 })
    new = old.merge(profile(100, { 2 => 1 }))
    expect(objects(new.diff(old))).to have_attributes(value: 100, variance: be_within(1e-6).of(100**2))
  end

  it "is nothing to profiles that were not sampled in windows" do
    expect([profile(100, nil), profile(100, { 0 => 1 })].map(&:sampled_in_windows?)).to eq([false, true])
    expect(objects(profile(100, nil)).windows).to be_nil
  end

  it "stays the same in a file, which shows the groups to nobody" do
    written = MemprofilerPprof::Profile.load(profile(3000, { 7 => 1, 8 => 15 }).to_pprof)
    expect(objects(written).windows).to eq(objects(profile(3000, { 7 => 1, 8 => 15 })).windows)
    expect(written.samples.map(&:labels)).to eq([{}])
  end

  describe "in go tool pprof", :go do
    def pprof(*flags, **options)
      profile = profile(1500, (1..15).to_h { |group| [group, group] })
                .merge(profile(500, nil), profile(300, { 15 => 1 }, line: "/b.rb:2"))
      Pprof::GoPprof.run(profile.to_pprof, *flags, "-sample_index=retained_objects", **options)
    end

    it "has the same totals, and no other warnings" do
      result = pprof("-top")
      expect(result.stdout).to match(/2300 total$/).and match(/2000 .* a#line1$/).and match(/300 .* b#line2$/)
      expect(result.stderr).to eq(Pprof::GoPprof.run(profile(500, nil).to_pprof, "-top").stderr)
    end

    it "lists the groups as numbers" do
      expect(pprof("-tags").stdout).to match(/retained_objects_windows: Total 1800/)
    end

    it "cancels out a profile itself" do
      base = profile(1500, (1..15).to_h { |group| [group, group] })
      expect(pprof("-top", base: base.to_pprof).stdout).to match(/ 500 .* a#line1$/)
    end
  end
end
