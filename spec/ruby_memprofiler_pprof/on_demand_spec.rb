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

  it "tells the allocations since the last delta_heap, whoever has asked" do
    start
    Thing.new
    expect(things(answer("/delta_heap"), :allocations)).to eq(0)
    2.times { Thing.new }
    expect(things(answer("/delta_heap"), :allocations)).to eq(2)
  end

  it "collects garbage only if asked, whatever the settings say" do
    start
    expect { answer("/heap", gc: true) }.not_to(change { GC.stat(:major_gc_count) })
    expect { answer("/heap?gc=1") }.to(change { GC.stat(:major_gc_count) })
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
end
