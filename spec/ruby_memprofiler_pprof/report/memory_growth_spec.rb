# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe MemprofilerPprof::Report::MemoryGrowth do
  # A series in which lines of the ledger have these sizes, in MiB; each profile follows a major collection.
  def leaks(count: 20, major: ->(index) { index }, sites: {}, allocated: [], weight: 10, **lines)
    snapshots = Array.new(count) do |index|
      memory = RecordedMemory.json(lines.transform_values { |levels| levels[index] })
      comments = { pid: 7, started_at: 1.5, minor_gc_count: index, major_gc_count: major.call(index), memory: memory,
                   total_allocated_objects: allocated[index] }.compact
      objects = { "/a.rb:1" => [0, 1000], **sites.transform_values { |levels| [0, levels[index]] } }
      MemprofilerPprof::Report::Snapshot.new(
        Pprof::Maker.lines(objects, time: 1_000_000_000 + (index * 60), comments: comments, weight: weight).profile
      )
    end
    MemprofilerPprof::Report::Leaks.new(snapshots)
  end

  # Rises by so many MiB at a time, with ups and downs.
  def rising(from, by, count = 20)
    random = Random.new(1)
    Array.new(count) { |index| from + (by * index) + random.rand(-0.25..0.25) }
  end

  def growing(...)
    leaks(...).memory_growth.growing.map { |finding| finding.line.key }
  end

  it "finds nothing if nothing grows" do
    expect(growing).to eq([])
    waves = Array.new(20) { |index| 10 + (5 * (index % 4)) }
    expect(growing(vm_memory: rising(30, 0), allocator_free: waves)).to eq([])
    expect(leaks.to_s).to include("\nNo part of the resident memory grows.\n")
      .and end_with("Growing: none; 1 steady.")
  end

  it "finds the lines that grow, the fastest first" do
    expect(growing(vm_memory: rising(30, 1), free_slots: rising(10, 2))).to eq(%i[free_slots vm_memory])
  end

  it "finds a line that grows with the program's work, which is uneven and has ended" do
    work = Array.new(28) { |index| [300, 500, 2000][index / 5 % 3] } + ([1] * 12)
    allocated = work.each_with_object([]) { |count, sums| sums << (count + (sums.last || 0)) }
    line = { count: 40, vm_memory: allocated.map { |count| 30 + (count / 1000.0) } }
    expect([growing(**line, allocated: allocated), growing(**line)]).to eq([%i[vm_memory], []])
  end

  it "does not tell native memory from objects that no sample is of" do
    text = leaks(vm_memory: rising(30, 1)).to_s
    expect(text.lines[1])
      .to match(%r{\AOf the resident memory \(\+[56]\d\.\d MiB/h\) these parts grow: Ruby VM and C libraries \+\S+ Mi})
      .and end_with(" MiB). No line of code explains it: native memory or a few large objects. " \
                    "`memprofiler why` of the running process names large objects, sampled or not.\n")
    expect(text).to end_with("Growing: no line of code; 1 steady.")
  end

  { free_slots: "fragmentation of Ruby's heap", allocator_free: "fragmentation in malloc",
    thread_stacks: "threads", profiler: "the profiler itself" }.each do |key, kind|
    it "says what it is if #{key} grows" do
      expect(leaks(key => rising(10, 1)).to_s).to include(" That is no leak of objects, but #{kind}.\n")
    end
  end

  it "claims nothing of objects if unexplained memory grows, too" do
    expect(leaks(free_slots: rising(10, 1), unexplained: rising(10, 2)).to_s)
      .to include(" No line of code explains it: native memory or a few large objects, and fragmentation of Ruby's ")
  end

  it "does not tell native memory from what malloc keeps where malloc does not say what that is" do
    expect(leaks(vm_memory: rising(30, 1), allocator_free: [nil] * 20).to_s)
      .to include(" No line of code explains it: native memory, fragmentation in malloc or a few large objects. ")
  end

  { "That is no leak of objects, but fragmentation in malloc." => [1, 0],
    "No line of code explains it: native memory or a few large objects." => [0, 1] }.each do |verdict, (free, native)|
    it "says #{verdict} by those profiles in which malloc says what is free" do
      known = Array.new(80) { |index| (index % 10).zero? }
      kept = rising(20, free, 80)
      used = rising(30, native, 80)
      # The remainder has it where it is not known.
      vm_memory = used.zip(kept, known).map { |level, free_level, said| said ? level : level + free_level }
      report = leaks(count: 80, vm_memory: vm_memory,
                     allocator_free: kept.zip(known).map { |level, said| level if said })
      expect(report.to_s).to include(" #{verdict}")
    end
  end

  it "says nothing of the kind if lines of code grow" do
    text = leaks(vm_memory: rising(30, 1), sites: { "/leak.rb:1" => Array.new(20) { |index| 100 * index } }).to_s
    expect(text).to include("these parts grow: Ruby VM and C libraries +", "\nGrowing: 1")
    expect(text).not_to include("No line of code explains it")
  end

  it "says nothing of the kind if objects grow, too" do
    text = leaks(vm_memory: rising(30, 1), object_memory: rising(20, 2),
                 sites: { "/leak.rb:1" => Array.new(20) { |index| 100 * index } }).to_s
    expect(text).to include("these parts grow: memory that objects own +", ", Ruby VM and C libraries +")
    expect(text).not_to include("No line of code explains it")
    expect(text).to match(/^growing .*leak\.rb:1  leak#line1$/).and end_with("Growing: 1; 1 steady.")
  end

  describe "if all of it grows, but no part for sure" do
    # What objects own is known from few samples, and what they miss is in the remainder.
    seen = Array.new(20) { |index| [0, 3, 1, 3, 0][index % 5] * index }
    growing_whole = { object_memory: seen.map { |part| 20 + part },
                      vm_memory: seen.map.with_index { |part, index| 100 + (3 * index) - part } }

    it "says so" do
      report = leaks(**growing_whole)
      expect([report.memory_growth.findings, report.memory_growth.untold?]).to eq([[], true])
      expect(report.to_s).to match(/^The resident memory grows: \+18\d MiB.* It cannot be told which part, as /)
    end

    it "names the line that most likely does" do
      # Of 16 samples, and a single one that is larger.
      sites = { "/big.rb:1" => [0, 0, 0, 0, 1, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 14, 14, 15, 16, 16],
                "/other.rb:1" => ([20] * 10) + ([60] * 10) }
      text = leaks(**growing_whole, sites: sites.transform_values { |levels| levels.map { |each| each * 100_000 } },
                                    weight: 100_000).to_s
      expect(text).to include("samples only. Most likely that is /big.rb:1, with +153 MiB. `memprofiler why` of the ")
    end
  end

  it "says that it grows ever more slowly" do
    levels = Array.new(60) { |index| 30 + (20 * (1 - Math.exp(-index / 25.0))) }
    report = leaks(count: 60, vm_memory: levels)
    expect(report.memory_growth.findings.map(&:verdict)).to eq([:slowing])
    expect(report.to_s).to include(", ever more slowly). No line of code explains it: native memory or ")
  end

  it "says what kind of growth it is although that slows down" do
    levels = Array.new(60) { |index| 30 + (20 * (1 - Math.exp(-index / 25.0))) }
    expect(leaks(count: 60, free_slots: levels).to_s)
      .to include(", ever more slowly). That is no growth of objects, but fragmentation of Ruby's heap.\n")
  end

  it "takes garbage for no growth of objects, but waits for no collection with the rest" do
    lines = { object_slots: rising(20, 1), vm_memory: rising(30, 1) }
    expect(growing(**lines)).to match_array(%i[object_slots vm_memory])
    expect(growing(**lines, major: ->(_) { 3 })).to eq([:vm_memory])
  end

  it "finds nothing in too short a series, or without ledgers" do
    expect(leaks(count: 7, vm_memory: rising(30, 1)).memory_growth).to have_attributes(findings: [], resident: nil)
    expect(leaks(count: 7).to_s).not_to include("No part of the resident memory")
  end

  it "compares only profiles that know the same lines, as what is unknown is part of another" do
    sizes = Array.new(20) { |index| index % 3 == 1 ? nil : 40 }
    native = sizes.zip(rising(30, 0)).map { |size, level| size ? level : level + 40 }
    expect(growing(object_memory: sizes, vm_memory: native)).to eq([])
    leak = rising(30, 2).zip(sizes).map { |level, size| size ? level : level + 40 }
    expect(growing(object_memory: sizes, vm_memory: leak)).to eq([:vm_memory])
    expect(growing(code: [nil] * 20, vm_memory: rising(30, 1))).to eq([:vm_memory])
  end

  it "knows which of the compared profiles are the first after a major collection" do
    sizes = Array.new(24) { |index| index % 3 == 1 ? nil : 40 }
    slots = rising(20, 1, 24)
    expect(growing(count: 24, object_memory: sizes, object_slots: slots)).to eq([:object_slots])
    # Those that no major collection follows are left out.
    expect(growing(count: 24, object_memory: sizes, object_slots: slots, major: ->(index) { index / 12 })).to eq([])
  end

  it "leaves out what matters little" do
    line = ->(rise) { Array.new(20) { |index| 10 + (rise * index / 19.0) } }
    expect([growing(profiler: line.call(0.9)), growing(profiler: line.call(1.2))]).to eq([[], [:profiler]])
  end

  it "is JSON" do
    json = leaks(vm_memory: rising(30, 1)).to_h[:memory]
    expect(json).to match([include(code: "GROWING", key: :vm_memory, name: "Ruby VM and C libraries",
                                   kind: "native memory or a few large objects", probability: be > 0.999)])
    expect(json.first[:bytes].size).to eq(20)
    expect(json.first[:growth_bytes_per_second][:low]..json.first[:growth_bytes_per_second][:high])
      .to cover(RecordedMemory::MIB / 60.0)
  end
end
