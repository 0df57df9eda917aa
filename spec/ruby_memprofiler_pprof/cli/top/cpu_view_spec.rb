# frozen_string_literal: true

%w[cli cli/top report cli/source cli/top/cpu_view].each { |name| require "ruby_memprofiler_pprof/#{name}" }

RSpec.describe MemprofilerPprof::CLI::Top::CPUView do
  let(:view) { described_class.new("a.sock", by: :line, sort: :flat, app: false) { |profile| profile } }

  # Line `number` was running for so many milliseconds of a second.
  def tell(milliseconds, number = 1, time: 1)
    types = [%w[samples count], %w[cpu nanoseconds]]
    view.profile = Pprof::Maker.new(time: time, duration: 1, types: types, comments: { pid: 7 },
                                    period_type: types.last, weight: nil)
                               .sample(["work /a.rb:#{number}"], [milliseconds / 10, milliseconds * 1_000_000]).profile
  end

  def lines
    view.lines(MemprofilerPprof::Report::Style.new(100, false), 12)
  end

  it "waits for the first profile" do
    expect(lines).to eq(["a.sock", "", "Waiting for the first profile ..."])
  end

  it "shows who uses CPU time" do
    tell(400)
    expect(lines).to match([/\Aa\.sock  pid 7  \d\d:\d\d:\d\d\z/,
                            "CPU time of the last 1.00 s: 400 ms, 40% of a processor", "",
                            "1-1 of 1 by line, sorted by *, ~ fewer than ten samples", / \*CPU .*LINE$/,
                            /^ +40%  .*a\.rb:1  work$/, "", "", "", "", "", /\Aq quit/])
  end

  it "adds up the last ten intervals" do
    tell(1000, 9)
    10.times { |second| tell(100 * (second % 2), time: 2 + second) }
    expect([lines[1], lines[5]]).to match([/last 10\.0 s: 500 ms, 5\.0% of a processor/, /5\.0%  .*a\.rb:1/])
  end

  it "shows the process and the time of the newest interval" do
    [60, 120].each { |time| tell(400, time: time) }
    expect(lines.first).to match(/\Aa\.sock  pid 7  .*:02:00\z/)
  end

  it "groups by what makes sense" do
    tell(400)
    groupings = Array.new(4) { lines[3][/by (\w+)/, 1].tap { view.press(:tab) } }
    expect([groupings, lines[3][/by (\w+)/, 1]]).to eq([%w[line method file gem], "line"])
  end

  it "sorts by either figure" do
    tell(400)
    view.press(:right)
    expect(lines[4]).to include("*WITH CALLS")
  end

  it "has neither holders nor memory" do
    tell(400)
    before = lines
    %w[w m].each { |key| view.press(key) }
    expect(lines).to eq(before)
  end
end
