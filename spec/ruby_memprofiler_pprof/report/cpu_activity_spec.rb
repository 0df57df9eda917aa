# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe MemprofilerPprof::Report::CPUActivity do
  # Ten seconds, in which two lines used 2 s and 1 s, and a third one next to nothing.
  let(:maker) do
    Pprof::Maker.new(time: 1, duration: 10, types: [%w[samples count], %w[cpu nanoseconds]],
                     period_type: %w[cpu nanoseconds], weight: nil)
                .sample(["main /app.rb:1", "work /app.rb:2"], [200, 2_000_000_000])
                .sample(["main /app.rb:1", "rest /lib.rb:3"], [100, 1_000_000_000])
                .sample(["main /app.rb:1"], [5, 50_000_000])
  end

  def activity(**options)
    described_class.new(maker.profile, **options)
  end

  def names(**options)
    activity(**options).rows.map { |row| row.name[/\w+\.rb:\d/] }
  end

  it "says how much of a processor is used" do
    expect(activity.summary).to eq(["CPU time of the last 10.0 s: 3.05 s, 30% of a processor"])
  end

  it "says which lines use it, with intervals" do
    expect(activity.lines).to eq(
      ["      *CPU  95% INTERVAL  WITH CALLS  95% INTERVAL  LINE",
       "       20%      18%..22%         20%      18%..22%  /app.rb:2  work",
       "       10%     8.4%..12%         10%     8.4%..12%  /lib.rb:3  rest",
       "     ~0.5%    0.1%..0.9%         30%      30%..30%  /app.rb:1  main"]
    )
  end

  it "sorts by what is used with calls" do
    expect(names).to eq(%w[app.rb:2 lib.rb:3 app.rb:1])
    expect(names(sort: :cumulative)).to eq(%w[app.rb:1 app.rb:2 lib.rb:3])
    expect(activity(sort: :cumulative).lines.first).to match(/^ +CPU .* \*WITH CALLS /)
  end

  it "finds names, files and methods" do
    expect([names(matching: /lib/), names(matching: /\bwork/),
            names(matching: /no/)]).to eq([%w[lib.rb:3], %w[app.rb:2], []])
  end

  it "shows the rows that are asked for" do
    expect(activity.lines(MemprofilerPprof::Report::PLAIN, 1..1).drop(1)).to match([/lib\.rb:3/])
  end

  it "leaves out columns where there is no room, the other figure's first" do
    first = ->(width) { activity.lines(MemprofilerPprof::Report::Style.new(width, false)).first }
    expect([60, 30].map { |width| first.call(width).split(/  +/) })
      .to eq([["", "*CPU", "95% INTERVAL", "LINE"], ["", "*CPU", "LINE"]])
  end

  it "refuses what is no profile of CPU time" do
    expect { described_class.new(Pprof::Maker.new(duration: 1).profile) }
      .to raise_error(MemprofilerPprof::ProfileError, "the profile has no CPU time")
    expect { described_class.new(Pprof::Maker.new.profile) }.to raise_error(MemprofilerPprof::ProfileError, /seconds/)
    expect { activity(sort: :bytes) }.to raise_error(ArgumentError, /sort must be one of :flat, :cumulative/)
  end
end
