# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

# script/bench_leaks measures how often the verdicts are right; this tests single series.
RSpec.describe MemprofilerPprof::Report::Leaks do
  # A series in which the sites have these levels, in samples.
  def snapshots(sites, major: ->(index) { index }, allocated: nil, by: :line, at_exit: nil, **options)
    count = sites.values.first.size
    Array.new(count) do |index|
      lines = sites.transform_values { |levels| [0, levels[index] * 10] }
      comments = { pid: 7, started_at: 1.5, minor_gc_count: index, major_gc_count: major.call(index),
                   total_allocated_objects: allocated&.at(index), at_exit: at_exit }.compact
      MemprofilerPprof::Report::Snapshot.new(
        Pprof::Maker.lines(lines, time: 1_000_000_000 + (index * 60), comments: comments, **options).profile,
        by: by
      )
    end
  end

  def verdicts(sites, **options)
    described_class.new(snapshots(sites, **options)).findings.to_h { |each| [each.growth.site.name, each.verdict] }
  end

  def verdict(levels, **options)
    verdicts({ "/app/a.rb:1" => levels }, **options).fetch("/app/a.rb:1")
  end

  let(:random) { Random.new(1) }
  let(:leak) { Array.new(20) { |index| 30 + (8 * index) + random.rand(-3..3) } }

  it "reports growing if it grows to the end" do
    expect(verdict(leak)).to eq(:growing)
  end

  it "says what SURE is of if it grows, but the interval of its bytes contains 0" do
    explained = [0.5, -0.5].map do |low|
      leaks = described_class.new(snapshots({ "/app/a.rb:1" => leak }))
      allow(leaks.findings.first.growth).to receive(:rate).and_return([1.0, low, 3.0])
      leaks.to_s[/^SURE .*/]
    end
    expect(explained).to match([nil, /\ASURE is of the number of objects/])
  end

  describe "with the profile of the process's exit" do
    def series(levels)
      at_exit = snapshots({ "/app/a.rb:1" => [*levels, 0] }, at_exit: "what threads held may be gone").last
      snapshots({ "/app/a.rb:1" => levels }) + [at_exit]
    end

    it "judges by those before, and says so" do
      leaks = described_class.new(series(leak))
      expect(leaks.growing.size).to eq(1)
      expect(leaks.to_s).to start_with("Process 7: 20 profiles,")
        .and include("\nWithout the profile of the process's exit: ")
    end

    it "looks at it if there is only one other, and says nothing if there is none" do
      expect(described_class.new(series([9])).to_h[:profiles]).to eq(2)
      expect(described_class.new(snapshots({ "/app/a.rb:1" => leak })).to_s).not_to include("exit")
    end
  end

  it "reports growing if it was sampled in windows, but not if these samples are all of one" do
    expect(verdict(leak, windows: [1] * 16)).to eq(:growing)
    expect(verdict(leak, windows: [1] + ([0] * 15))).not_to eq(:growing)
  end

  it "reports settled if it grew and stopped" do
    expect(verdict(Array.new(20) { |index| [index * 40, 200].min + random.rand(-3..3) })).to eq(:settled)
  end

  it "reports slowing if it still grows, but less and less" do
    expect(verdict(Array.new(40) { |index| (2000 * (1 - Math.exp(-index / 13.0))).round })).to eq(:slowing)
  end

  it "reports perhaps, or unclear, if too few samples say whether it still grows" do
    expect(verdict([0, 0, 0, 0, 1, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 14, 14, 15, 16, 16])).to eq(:perhaps)
    expect(verdict([2, 2, 2, 3, 3, 4, 4, 5, 6, 6, 7, 7, 8, 8, 9, 9, 9, 10, 10, 10])).to eq(:unclear)
  end

  it "reports steady if it goes up and down" do
    expect(verdict(Array.new(20) { random.rand(50..500) })).to eq(:steady)
    expect(verdict(Array.new(20) { |index| 20 + (50 * (index % 5)) })).to eq(:steady)
  end

  it "reports no growth in too short a series" do
    expect(verdict(leak.first(7))).not_to eq(:growing)
  end

  it "reports nothing that is based on fewer than ten samples" do
    expect(verdict(Array.new(20) { |index| index / 3 })).to eq(:unclear)
  end

  it "reports no leak unless a major collection has proven it" do
    expect(verdict(leak, major: ->(_) { 3 })).to eq(:perhaps)
  end

  it "only considers what major collections have left" do
    # Nothing but old garbage: after each major collection there is no more than before.
    levels = Array.new(24) { |index| 50 + (40 * (index % 8)) }
    expect(verdict(levels, major: ->(index) { index / 8 })).to eq(:steady)
  end

  it "reports no leak if a late major collection frees it" do
    levels = Array.new(48) { |index| index < 25 || index == 47 ? 100 : 100 + (15 * (index - 24)) }
    expect(verdict(levels, major: ->(index) { [0, 24, 47].count { |at| at <= index } })).to eq(:steady)
  end

  it "reports no leak if there was more of it before" do
    levels = Array.new(24) { |index| index < 6 ? 100 + (60 * index) : 100 + (15 * (index - 6)) }
    expect(verdict(levels, major: ->(_) {})).to eq(:steady)
  end

  it "does not report settled if it varies by more than it grew" do
    expect(verdict(Array.new(20) { |index| index.zero? ? 20 : [60, 400][index % 2] })).to eq(:steady)
  end

  describe "with the program's count of allocations" do
    # 28 profiles with work, more of it in some than in others, and 12 without. 8 samples stay of a thousand objects.
    let(:work) { Array.new(28) { |index| [300, 500, 2000][index / 5 % 3] } + ([1] * 12) }
    let(:allocated) { work.each_with_object([]) { |count, sums| sums << (count + (sums.last || 0)) } }
    let(:leak_of_work) { allocated.map { |count| 30 + (count * 8 / 1000) } }

    it "reports growing if it grows with the program's work, which has ended" do
      expect(verdict(leak_of_work, allocated: allocated)).to eq(:growing)
      expect(verdict(leak_of_work)).not_to eq(:growing)
    end

    it "reports growing if it grows with time, however much work there is" do
      expect(verdict(leak + ([190] * 20), allocated: allocated)).not_to eq(:growing)
      expect(verdict(Array.new(40) { |index| 30 + (8 * index) }, allocated: allocated)).to eq(:growing)
    end

    it "takes what it says while the program does nothing only once" do
      # It has never been as high as it happens to be at the end.
      levels = [90, 60, 110, 80, 120, 70, 125, 115, 105, 100, 90, 120, 80, 110, 130, 95, 125, 100, 90, 140]
      counts = levels.each_index.map { |index| 1000 * index }
      at_rest = [[140] * 300, Array.new(300) { |index| 19_000 + index }]
      expect(verdict(levels + at_rest[0], allocated: counts + at_rest[1], major: ->(_) {})).to eq(:settled)
    end

    it "is no more certain than of either by itself" do
      levels = Array.new(20) { |index| 50 + (8 * index) + [-24, 18, 0, 30, -18][index % 5] }
      one, two = [nil, Array.new(20) { |index| index * 1000 }].map do |counts|
        1 - described_class.new(snapshots({ "/app/a.rb:1" => levels }, allocated: counts)).findings[0].probability
      end
      expect(two).to be_within(1e-9).of(2 * one)
    end
  end

  it "is less certain among many sites" do
    levels = Array.new(20) { |index| 50 + (8 * index) + [-24, 18, 0, 30, -18][index % 5] }
    busy = Array.new(100) { |index| ["/app/busy.rb:#{index + 1}", Array.new(20) { random.rand(50..120) }] }.to_h
    expect(verdict(levels)).to eq(:growing)
    expect(verdicts({ **busy, "/app/a.rb:1" => levels }).fetch("/app/a.rb:1")).to eq(:perhaps)
  end

  it "ignores profiles after the last major collection" do
    leaks = described_class.new(snapshots({ "/app/a.rb:1" => leak }, major: ->(index) { [index, 15].min }))
    expect(leaks.cut).to eq(4)
    expect(leaks.to_h).to include(profiles: 16, left_out: 4)
  end

  describe "with a peek among the flushes" do
    # The base is so large that only the allocations of contiguous intervals show that none of it was exchanged.
    def flushed(index, time: 60 * index, duration: 60)
      lines = { "/app/a.rb:1" => [100, 100_000 + (100 * index)] }
      comments = { pid: 7, started_at: 1.5, minor_gc_count: index, major_gc_count: index }
      maker = Pprof::Maker.lines(lines, time: 1_000_000_000 + time, duration: duration, comments: comments)
      MemprofilerPprof::Report::Snapshot.new(maker.profile)
    end

    let(:flushes) { Array.new(20) { |index| flushed(index) } }
    let(:peek) { flushed(10, time: 630, duration: 0) }

    it "reports growing as without it" do
      leaks = described_class.new([*flushes, peek])
      expect(leaks.findings.map(&:verdict)).to eq([:growing])
      expect(leaks.to_h).to include(profiles: 20)
    end

    it "uses it if there are too few flushes" do
      expect(described_class.new([*flushes.first(7), peek]).to_h).to include(profiles: 8)
    end
  end

  it "subtracts garbage that no collection has seen from levels" do
    young = snapshots({ "/app/a.rb:1" => leak }, age: 0)
    expect(young.map { |snapshot| snapshot.objects(["/app/a.rb:1", "/app/a.rb"]) }).to all(eq(0))
    expect(verdict(leak, age: 2)).to eq(:growing)
  end

  it "refuses profiles of anything but objects" do
    cpu = Pprof::Maker.new(time: 1, weight: nil, types: [%w[samples count], %w[cpu nanoseconds]]).profile
    expect { MemprofilerPprof::Report::Snapshot.new(cpu) }
      .to raise_error(MemprofilerPprof::ProfileError, "the profile is not one of live objects")
  end

  it "refuses profiles whose weight cannot be one" do
    expect { snapshots({ "/app/a.rb:1" => [1] }, weight: "1e308") }
      .to raise_error(MemprofilerPprof::ProfileError, /how it was sampled/)
  end

  it "tells methods of the same name in different files apart" do
    level = [500] * 20
    findings = described_class.new(snapshots({ "/app/a.rb:1" => leak, "/lib/a.rb:1" => level }, by: :method)).findings
    found = findings.to_h { |each| [each.growth.site.file, [each.verdict, each.growth.retained.value]] }
    expect(found).to eq("/app/a.rb" => [:growing, leak.last * 1000], "/lib/a.rb" => [:steady, 500_000])
  end

  it "ranks what grows by bytes per second, and gives their interval" do
    slow = leak.map { |level| level / 2 }
    leaks = described_class.new(snapshots({ "/app/slow.rb:1" => slow, "/app/fast.rb:1" => leak }))
    expect(leaks.growing.map { |finding| finding.growth.site.name }).to eq(%w[/app/fast.rb:1 /app/slow.rb:1])
    rate, low, high = leaks.growing.first.growth.rate
    # 8 samples of 10 objects of 100 bytes a minute.
    expect(low..high).to cover(8000 / 60.0)
    expect(rate).to be_within(10).percent_of(8000 / 60.0)
  end

  it "finds one leak among many sites" do
    sites = Array.new(100) { |index| ["/app/busy.rb:#{index + 1}", Array.new(20) { random.rand(50..120) }] }.to_h
    leaks = described_class.new(snapshots({ **sites, "/app/leak.rb:1" => leak }))
    expect(leaks.growing.map { |finding| finding.growth.site.name }).to eq(["/app/leak.rb:1"])
  end

  it "refuses profiles of several processes" do
    profile = Pprof::Maker.lines({ "/a.rb:1" => [0, 1] }, comments: { pid: 8 }).profile
    other = MemprofilerPprof::Report::Snapshot.new(profile)
    expect { described_class.new([*snapshots({ "/app/a.rb:1" => leak }), other]) }
      .to raise_error(ArgumentError, /must be of one process/)
  end

  it "refuses a single profile" do
    expect { described_class.new(snapshots({ "/app/a.rb:1" => [1] })) }.to raise_error(ArgumentError, /at least two/)
  end
end
