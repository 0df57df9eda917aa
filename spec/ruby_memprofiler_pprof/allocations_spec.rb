# frozen_string_literal: true

# What profiles report about allocations, whether their objects are alive or not.
RSpec.describe MemprofilerPprof::Collector, "allocations", :liveness, :moving, :stress, :jit, :threads do
  # How many objects the block allocates, by the VM's count.
  def allocated
    before = GC.stat(:total_allocated_objects)
    yield
    GC.stat(:total_allocated_objects) - before
  end

  def allocate(count)
    i = 0
    while i < count
      Object.new
      i += 1
    end
  end

  it "equal the VM's own count at rate 1" do
    # The first call creates the names of all its keys.
    GC.stat(:total_allocated_objects)
    collector = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start
    collector.flush
    # From Ruby 3.4 on the VM counts what a collection moves as allocated.
    GC.disable
    expected = allocated { allocate(50_000) }
    GC.enable
    profile = Pprof.decode(collector.flush)
    total = profile.total(:allocations) { |sample| sample.frame?(/#allocated\z/) }
    # Either count may include what the calls of GC.stat themselves allocate.
    expect(total).to be_within(3).of(expected)
    expect(total).to be > 50_000
  end

  it "are those since the last flush" do
    collector = new_collector(sample_rate: 1.0).start
    allocate(1000)
    collector.flush
    allocate(10)
    # Excludes what other threads may allocate.
    total = Pprof.decode(collector.flush).total(:allocations) do |sample|
      sample.labels["class"] == "Object" && sample.frame?(/#allocate\z/)
    end
    expect(total).to eq(10)
  end

  it "count objects that died before the flush, with their size" do
    profile = profile_of do
      allocate(1000)
      GC.start
    end
    sample = profile.samples_with_frame(/allocate\z/).find { |found| found.labels["class"] == "Object" }
    expect([sample[:allocations], sample[:allocations_size]]).to eq([1000, 40_000])
  end

  it "do not contain what the gem itself allocates" do
    collector = new_collector(sample_rate: 1.0).start
    flushed = Queue.new
    flusher = MemprofilerPprof::BlockFlusher.new(collector, interval: 0.01, on_flush: flushed.method(:push)).start!
    # The first flush fills the VM's caches: in the flusher's thread, which is not profiled.
    2.times { flushed.pop }
    flusher.stop!
    profile = Pprof.decode(collector.flush)
    expect(profile.samples_with_frame(/BlockFlusher#flush|Collector#flush|work_at_interval/)).to be_empty
  end

  # Under GC.stress it takes as long as fifty others, and shows no more than they.
  it "are estimated without bias at lower rates", stress: false do
    estimates = (1..20).map do |seed|
      profile = profile_of(sample_rate: 0.02, seed: seed) { allocate(20_000) }
      profile.by_class(:allocations)["Object"]
    end
    # The standard deviation of one estimate is sqrt(20,000 * 0.98 / 0.02), that of the mean of twenty is 221.
    expect(estimates.sum / 20.0).to be_within(6 * 221).of(20_000)
  end
  it "are estimated without bias where each row has one sample", stress: false do
    profile = profile_of(sample_rate: 0.7, seed: 1) do
      2000.times { |number| MemprofilerPprof.with_labels(number: number) { Object.new } }
    end
    # The standard deviation is sqrt(2000 * 0.3 / 0.7) = 29.
    expect(profile.by_class(:allocations)["Object"]).to be_within(4 * 29).of(2000)
  end
end
