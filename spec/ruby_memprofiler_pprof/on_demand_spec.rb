# frozen_string_literal: true

require "tmpdir"

RSpec.describe MemprofilerPprof::OnDemand do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  before { stub_const("Thing", Class.new) }

  after { profiler.stop }

  let(:profiler) { MemprofilerPprof::DefaultProfiler.new({}) }

  def start(**options)
    profiler.start(sample_rate: 1, **options)
  end

  def answer(target, **options)
    request = described_class::Request.parse(target)
    profiler.on_demand.answer(request, profiler.collector, **options)
  end

  def things(bytes, value)
    MemprofilerPprof::Profile.load(bytes).tag(class: "Thing").total(value).value
  end

  it "compares with what is alive some seconds later" do
    start
    kept = Array.new(3) { Thing.new }
    later = ->(seconds) { kept += Array.new(seconds) { Thing.new } }
    old, new = described_class.split(answer("/diff?seconds=4", wait: later))
    expect([things(old, :retained_objects), things(new, :retained_objects), things(new, :allocations)]).to eq([3, 7, 4])
    expect(kept.size).to eq(7)
  end

  it "has labels and threads' names on CPU time as the settings say" do
    start(labels: false, thread_names: true)
    work = lambda do |_seconds|
      MemprofilerPprof.with_labels(job: "one") do
        last = MemprofilerPprof::CPU.stats[:signals] + 5
        1000.times { nil } while MemprofilerPprof::CPU.stats[:signals] < last
      end
    end
    labels = Pprof.decode(answer("/profile", wait: work)).samples.map(&:labels)
    expect(labels).to include(include("thread" => "main"))
    expect(labels.flat_map(&:keys)).not_to include("job")
  end

  it "tells the allocations since the last delta_heap, whoever has asked" do
    start
    Thing.new
    expect(things(answer("/delta_heap"), :allocations)).to eq(0)
    2.times { Thing.new }
    expect(things(answer("/delta_heap"), :allocations)).to eq(2)
  end

  it "collects garbage only if asked, whatever the settings say" do
    start
    expect(collects_garbage? { answer("/heap", gc: true) }).to be(false)
    expect { answer("/heap?gc=1") }.to(change { GC.stat(:major_gc_count) })
  end

  describe "retainers" do
    before { start }

    it "are what the collector says, in any form" do
      asked = RecordedRetainers.answer_of(profiler.collector)
      json = RecordedRetainers.json(pid: Process.pid)
      expect(answer("/retainers?site=a.rb:7&class=Foo&limit=3&timeout=9&in_process=1"))
        .to start_with("Process #{Process.pid}, ").and include("@cards → Hash (6,724)")
      answers = %w[json pprof].map { |format| answer("/retainers?format=#{format}") }
      expect(answers).to eq([json, RecordedRetainers.pprof])
      expect(described_class.split(answer("/retainers?format=both"))).to eq([json.b, RecordedRetainers.pprof])
      expect(asked).to eq([["a.rb:7", "Foo", 3, true, 9], *[[nil, nil, 10, false, 60]] * 3])
    end

    it "are looked for once at a time, and again after a refusal" do
      asked = Queue.new
      gate = Queue.new
      RecordedRetainers.answer_of(profiler.collector) { (asked << true) && gate.pop && raise(IOError) }
      first = Thread.new { answer("/retainers") }
      first.report_on_exception = false
      asked.pop
      expect { answer("/retainers") }
        .to raise_error(MemprofilerPprof::RetainersError, /\ASomebody else is asking who holds the heap; try again la/)
      gate << true
      expect { first.value }.to raise_error(IOError)
      gate << true
      expect { answer("/retainers") }.to raise_error(IOError)
    end

    it "keep nobody from taking a profile" do
      gate = Queue.new
      asked = Queue.new
      answer = [RecordedRetainers.json, RecordedRetainers.pprof]
      RecordedRetainers.answer_of(profiler.collector) { (asked << true) && gate.pop && answer }
      turns = Mutex.new
      turn = ->(&flush) { turns.synchronize(&flush) }
      waiting = Thread.new { answer("/retainers", turn: turn) }
      asked.pop
      expect(things(answer("/heap", turn: turn), :retained_objects)).to eq(0)
      gate << true
      expect(waiting.value).to start_with("Process 4711")
    end
  end

  describe "memory" do
    it "is where the memory is, after a walk over the heap or at a glance" do
      start
      asked = RecordedMemory.answer_of(profiler.collector)
      expect(answer("/memory")).to start_with("Process #{Process.pid}, 2026-11-23 07:00:00 UTC\n204 MiB resident")
      expect(JSON.parse(answer("/memory?quick=1&format=json"))).to include("full" => false, "rss_bytes" => 213_647_360)
      expect(asked).to eq([true, false])
    end

    it "waits for its turn" do
      start
      RecordedMemory.answer_of(profiler.collector)
      turns = []
      answer("/memory", turn: ->(&flush) { flush.call.tap { turns << true } })
      expect(turns).to eq([true])
    end
  end

  describe "leaks" do
    it "rests on the files that the process has written" do
      start(pattern: "%{index}.pprof", interval: 1000)
      3.times { profiler.flusher.__send__(:flush) }
      expect(answer("/leaks")).to match(/\AProcess #{Process.pid}: 3 profiles, .*there will be 8 in 83\.3 min\.\z/m)
    end

    it "rests on profiles in memory where there are no files, until the profiler stops" do
      start
      others = Thread.list
      expect(answer("/leaks"))
        .to match(/\AProcess \d+: 1 profile so far, .* every 30 s: there will be 8 in 3\.5 min\.\z/m)
      expect(Dir.children(".")).to eq([])
      # Those of other examples end some time after their collectors.
      series = (Thread.list - others).find { |thread| thread.name == "ruby_memprofiler_pprof leaks" }
      profiler.stop
      expect(series).not_to be_alive
    end
  end

  describe "profile" do
    it "samples CPU time for some seconds" do
      waited = []
      bytes = %w[/profile /profile?seconds=2].map { |target| answer(target, wait: ->(seconds) { waited << seconds }) }
      expect(waited).to eq([30, 2])
      expect(Pprof.decode(bytes.last).type_names).to eq(%w[samples cpu])
    end

    it "ends if nobody waits for it" do
      expect { answer("/profile", wait: ->(_) { raise IOError, "gone" }) }.to raise_error(IOError)
      expect(MemprofilerPprof::CPU).not_to be_running
    end

    it "is expected to take that long" do
      durations = %w[/profile /profile?seconds=2].map { |target| described_class::Request.parse(target).duration }
      expect(durations).to eq([30, 2])
    end
  end
end
