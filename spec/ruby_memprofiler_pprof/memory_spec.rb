# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Memory do
  let(:memory) { RecordedMemory.memory }

  def mebibytes(number)
    (number * RecordedMemory::MIB).round
  end

  describe "Collector#memory" do
    let(:collector) { new_collector.start }

    it "asks the extension, by default for everything" do
      asked = RecordedMemory.answer_of(collector)
      expect([collector.memory, collector.memory(full: false)].map(&:full?)).to eq([true, false])
      expect(asked).to eq([true, false])
    end

    it "refuses anything else" do
      expect { collector.memory(full: 1) }.to raise_error(ArgumentError, "full must be one of true, false, got 1")
    end

    it "is loaded only if somebody asks" do
      code = "collector = new_collector.start; collector.flush; " \
             "print $LOADED_FEATURES.grep(%r{pprof/(memory(/|\\.rb)|report)}).size, defined?(JSON).inspect"
      expect(run_ruby(code, options: %w[--disable-gems]).stdout).to eq("0nil")
    end
  end

  describe ".current" do
    # In a process of its own, whose module has another method than the extension's.
    def print_current(code)
      run_ruby(<<~RUBY).stdout
        require "#{File.expand_path("../support/memory", __dir__)}"
        module_asked = RecordedMemory.answer_of(MemprofilerPprof)
        asked = RecordedMemory.answer_of(MemprofilerPprof.collector)
        #{code}
        print [module_asked, asked]
      RUBY
    end

    it "asks the process itself if its profiler does not run, with a walk over the heap only if asked" do
      expect(print_current("MemprofilerPprof::Memory.current; MemprofilerPprof::Memory.current(full: true)"))
        .to eq("[[false, true], []]")
    end

    it "asks the collector of the process if it runs" do
      expect(print_current("MemprofilerPprof.start(files: false); MemprofilerPprof::Memory.current"))
        .to eq("[[], [false]]")
    end

    it "knows when the process was attached to" do
      time = "2026-11-23T06:00:00Z"
      expect(new_collector.memory.attached_at).to be_nil
      expect(new_collector(tags: { attached_at: time }).memory.attached_at).to eq(Time.utc(2026, 11, 23, 6))
    end

    it "refuses anything else" do
      expect { described_class.current(full: nil) }.to raise_error(ArgumentError, /full must be one of true, false/)
    end
  end

  it "has lines that add up to the resident memory" do
    expect(memory.lines.sum(&:bytes)).to eq(memory.rss)
    expect(memory).to have_attributes(rss: mebibytes(203.75), peak_rss: mebibytes(212.75), swap: 0,
                                      unexplained: mebibytes(0.25), shared_bytes: mebibytes(15),
                                      private_bytes: mebibytes(188.75), copied_bytes: nil)
  end

  it "says of each line how it is known" do
    expect(memory.lines.first(3).map(&:to_a))
      .to eq([[:object_slots, "live objects in Ruby's heap", mebibytes(21.5), nil, nil, :exact, nil],
              [:object_memory, "memory that objects own", mebibytes(22.5), mebibytes(20.25), mebibytes(24.75),
               :estimated, nil],
              [:code, "Ruby code (instruction sequences)", mebibytes(44.75), nil, nil, :estimated, nil]])
    expect(memory.lines.map(&:interval).compact).to eq([[mebibytes(20.25), mebibytes(24.75)]])
  end

  it "has English names for all lines, whatever they are" do
    line = { key: "of_the_future", bytes: 1, source: "exact" }
    expect(RecordedMemory.memory(lines: [line]).lines.map(&:name)).to eq(["of the future"])
    expect(memory.lines.map(&:name).grep(/_/)).to eq([])
  end

  it "says whose objects keep free slots" do
    expect(memory.held_slots.first).to have_attributes(site: RecordedMemory::SITE, bytes: mebibytes(29.75),
                                                       objects: 4000)
  end

  it "says what the limit is" do
    expect(memory.limit).to have_attributes(bytes: mebibytes(300), usage: mebibytes(231), kind: "cgroup v2", used: 0.77)
    expect(RecordedMemory.memory(limit: nil).limit).to be_nil
  end

  it "says what was asked, and what that took" do
    expect(memory).to have_attributes(pid: 4711, time: Time.utc(2026, 11, 23, 7), full?: true, elapsed: 0.0463,
                                      allocator: "glibc 2.36")
  end

  it "gives a line by its key" do
    expect([memory[:free_slots], memory[:nothing]]).to eq([mebibytes(32), nil])
  end

  it "does not need what is not known" do
    unknown = described_class.new({ lines: [{ key: "jit_code", source: "unknown", note: "no /proc" }] })
    expect(unknown).to have_attributes(rss: nil, time: nil, elapsed: nil, limit: nil, held_slots: [], advice: [])
    expect(unknown.lines.first).to have_attributes(bytes: nil, interval: nil, source: :unknown, note: "no /proc")
  end

  describe "as JSON" do
    it "has the lines' names and the advice besides what the extension says" do
      json = JSON.parse(memory.to_json)
      expect(json).to include("rss_bytes" => mebibytes(203.75), "unexplained_bytes" => mebibytes(0.25))
      expect(json["lines"].map { |line| line.values_at("key", "name") })
        .to include(["free_slots", "free slots in Ruby's heap"])
      expect(json["advice"].map { |each| each["key"] }).to eq(%w[code free_slots])
    end

    it "is read as it is written" do
      again = described_class.parse(memory.to_json)
      expect(again.map(&:to_h)).to eq([memory.to_h])
      expect(described_class.parse("[#{memory.to_json},#{memory.to_json}]").size).to eq(2)
    end

    line = { key: "code", source: "exact" }
    held = { site: "/a.rb:1", bytes: 1, objects: 1 }
    { attached_at: 5, time: [], pid: "7", rss_bytes: "1", elapsed_nanoseconds: {}, allocator: 1, limit: 1,
      held_slots: {}, lines: [line.merge(bytes: "1")] }.each do |member, value|
      it "refuses #{value.inspect} for #{member}" do
        expect { RecordedMemory.memory(member => value) }.to raise_error(MemprofilerPprof::ProfileError)
      end
    end

    it "does not need what is no time" do
      ["2026-13-23T07:00:00Z", "now"].each { |time| expect(RecordedMemory.memory(time: time).time).to be_nil }
    end

    it "refuses a number that is infinite" do
      json = RecordedMemory.json(rss_bytes: 1).sub('"rss_bytes":1,', '"rss_bytes":1e999,')
      expect { described_class.parse(json) }.to raise_error(MemprofilerPprof::ProfileError)
    end

    { "line" => { lines: [line.merge(note: 1)] }, "key of a line" => { lines: [line.merge(key: 1)] },
      "limit" => { limit: { usage_bytes: 1, kind: "x" } }, "site" => { held_slots: [held.merge(site: nil)] },
      "number of a site" => { held_slots: [held.merge(objects: "1")] } }.each do |what, members|
      it "refuses a wrong #{what}" do
        expect { RecordedMemory.memory(**members) }.to raise_error(MemprofilerPprof::ProfileError)
      end
    end

    ["{", "[1]", "{}", '{"lines": 1}', '{"lines": [{}]}', "null"].each do |text|
      it "refuses #{text}" do
        expect { described_class.parse(text) }
          .to raise_error(MemprofilerPprof::ProfileError, /\Athis does not say where memory is/)
      end
    end
  end

  describe ".load" do
    def profile(**comments)
      Pprof::Maker.lines({ "/a.rb:1" => [0, 1] }, comments: comments)
    end

    it "reads what a profile says" do
      expect(described_class.load(profile(**RecordedMemory.comments).to_s).to_h).to eq(memory.to_h)
    end

    it "says that a profile has nothing, or that of several" do
      twice = profile(**RecordedMemory.comments, more: 1).profile
      twice = twice.merge(profile(**RecordedMemory.comments(pid: 8)).profile)
      [profile, profile(memory: "{")].map(&:to_s).push(twice.to_pprof).each do |bytes|
        expect { described_class.load(bytes) }
          .to raise_error(MemprofilerPprof::ProfileError, "the profile does not say where the memory was")
      end
    end
  end

  describe "its advice" do
    def advice(mebibytes = {}, **changes)
      RecordedMemory.memory(mebibytes, **changes).advice.map { |each| [each.key, each.text, each.at_most] }
    end

    it "is about what is large, the largest first" do
      expect(advice.map(&:first)).to eq(%i[code free_slots])
      expect(advice({ allocator_free: 60, code: 1 }).map(&:first)).to eq(%i[allocator_free free_slots])
      expect(advice({ code: 1, free_slots: 1, allocator_free: 1 })).to eq([])
    end

    it "is about no small process" do
      tenth = RecordedMemory::FULL.transform_values { |size| size / 10.0 }
      expect(advice(tenth)).to eq([])
    end

    it "has an upper bound where there is one" do
      expect(advice.map(&:last)).to eq([nil, mebibytes(32)])
    end

    it "names the line whose objects keep the most free slots" do
      expect(advice.last[1]).to include("GC.compact").and end_with("#{RecordedMemory::SITE} keep the most of them.")
      expect(advice(held_slots: []).last[1]).not_to include("keep the most")
    end

    it "says what frees pages without objects if most are such" do
      expect(advice(empty_page_bytes: mebibytes(20)).last).to match([:free_slots, /Process\.warmup/, mebibytes(32)])
      expect(advice(empty_page_bytes: mebibytes(12)).last).to match([:free_slots, /GC\.compact/, mebibytes(32)])
    end

    { "glibc 2.36" => /malloc_trim.*MALLOC_ARENA_MAX/, "jemalloc 5.3.0" => /dirty_decay_ms/,
      "tcmalloc" => /TCMALLOC_RELEASE_RATE/ }.each do |allocator, text|
      it "depends on the allocator #{allocator}" do
        expect(advice({ allocator_free: 99 }, allocator: allocator).first).to match([:allocator_free, text, Integer])
      end
    end

    it "is none where nothing is known to help" do
      expect(advice({ allocator_free: 99, code: 1, free_slots: 0 }, allocator: "musl")).to eq([])
    end

    it "says what copy-on-write has cost" do
      expect(advice({ code: 1, free_slots: 1, allocator_free: 1 }, copied_bytes: mebibytes(50)))
        .to match([[:copied, /Process\.warmup/, mebibytes(50)]])
    end
  end
end
