# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe MemprofilerPprof::Report::Activity do
  # Allocated and retained in ten seconds, 100 bytes each, 10 objects per sample.
  let(:profile) { make({ "/a.rb:1" => [5000, 10], "/b.rb:2" => [20, 900], "/c.rb:3" => [1000, 0] }) }

  def make(lines, **options)
    Pprof::Maker.lines(lines, **options).profile
  end

  def lines(**options)
    described_class.new(profile, by: :line, **options)
  end

  def names(activity)
    activity.rows.map { |row| row.name[1] }.join
  end

  it "shows allocations per second, and what is alive" do
    row = lines.rows.first
    expect(row).to have_attributes(name: "/a.rb:1", file: "/a.rb", line: 1, function: "a#line1")
    expect(described_class::ORDERS.map { |figure| row[figure].value }).to eq([500, 50_000, 10, 1000])
  end

  it "is that of all processes together in a merged profile" do
    both = [7, 8].map { |pid| make({ "/a.rb:1" => [5000, 10] }, comments: { pid: pid }) }.reduce(:merge)
    expect(described_class.new(both, by: :line).rows.first).to have_attributes(
      allocations: have_attributes(value: 1000), objects: have_attributes(value: 20)
    )
  end

  it "returns figures as Integers where possible" do
    expect(lines.rows.first.allocations.to_i).to be_an(Integer).and eq(500)
  end

  it "shows the interval per second, too" do
    per_interval = profile.top(by: :line, type: :allocations).first.flat
    expect(lines.rows.first.allocations)
      .to have_attributes(low: per_interval.low / 10, high: per_interval.high / 10, samples: per_interval.samples,
                          variance: per_interval.variance / 100)
  end

  it "adds all sites up" do
    expect(lines.total.transform_values(&:value))
      .to eq(allocations: 602, allocated_bytes: 60_200, objects: 910, bytes: 91_000)
    expect(lines.summary).to match([%r{\AAllocates 602 objects/s \(.*\), 58.8 KiB/s \(}, /\ARetains   910 objects \(/])
  end

  { allocations: "acb", allocated_bytes: "acb", objects: "bac", bytes: "bac" }.each do |sort, order|
    it "sorts by #{sort}" do
      expect(names(lines(sort: sort))).to eq(order)
    end
  end

  it "limits, and filters by name, file and method" do
    expect(names(lines(limit: 1))).to eq("a")
    expect(names(lines(matching: /\A(b#line2|.c\.rb)\z/))).to eq("cb")
  end

  it "marks what is based on fewer than ten samples" do
    expect(lines.lines.grep(/b.rb/).first).to match(/\A +~2 .* 900 /)
  end

  it "shows the rows of a range" do
    expect(lines.lines(MemprofilerPprof::Report::PLAIN, 1..1)).to match([/\*ALLOC/, /c\.rb/])
    expect(lines.lines(MemprofilerPprof::Report::PLAIN, 7..)).to match([/\*ALLOC/])
  end

  it "fits into a narrow terminal, including the column it is sorted by" do
    narrow = lines(sort: :objects).lines(MemprofilerPprof::Report::Style.new(56, false))
    expect(narrow.map(&:size).max).to be <= 56
    expect(narrow.first).to include("*OBJECTS")
  end

  it "shows no control characters, which a name may contain" do
    activity = described_class.new(make({ "/a\e[2J.rb:1" => [1, 1] }), by: :line)
    expect(activity.lines.last).to include("/a?[2J.rb:1")
  end

  it "refuses a profile without a duration" do
    expect { described_class.new(make({ "/a.rb:1" => [1, 1] }, duration: 0)) }
      .to raise_error(MemprofilerPprof::ProfileError, /how many seconds/)
  end

  it "refuses an unknown order" do
    expect { lines(sort: :name) }.to raise_error(ArgumentError, /sort must be one of :allocations, .*, got :name/)
  end

  it "includes everything in JSON" do
    expect(lines(limit: 1).to_h).to match(
      by: :line, sort: :allocations, seconds: 10.0, total: include(bytes: include(value: 91_000)),
      sites: [include(name: "/a.rb:1", allocations: include(value: 500, low_confidence: false))]
    )
  end
end
