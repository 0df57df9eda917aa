# frozen_string_literal: true

require "objspace"

RSpec.describe MemprofilerPprof::Collector, "bounds" do
  def allocate(count)
    Array.new(count) { Object.new }
  end

  it "keeps at most max_heap_samples live samples" do
    collector = new_collector(sample_rate: 1.0, max_heap_samples: 1000, seed: 1).start
    kept = allocate(50_000)
    expect(collector.live_heap_samples_count).to be_between(300, 1000)
    expect(collector.stats[:halvings]).to be >= 5
    expect(kept.size).to eq(50_000)
  end

  it "estimates without bias in spite of halvings" do
    estimates = (1..30).map do |seed|
      kept = nil
      profile = profile_of(sample_rate: 1.0, max_heap_samples: 1000, seed: seed) { kept = allocate(20_000) }
      profile.by_class(:retained_objects)["Object"]
    end
    # Some 600 samples each: a standard deviation of about 800, that of the mean of thirty about 150.
    expect(estimates.sum / 30.0).to be_within(6 * 150).of(20_000)
  end

  it "tells how many samples were dropped" do
    collector = new_collector(sample_rate: 1.0, max_heap_samples: 1000).start
    kept = allocate(5_000)
    data = collector.flush
    expect(data.dropped_samples_heap_bufsize).to be > 1000
    expect(Pprof.decode(data).comments).to include("thinned_samples=#{data.dropped_samples_heap_bufsize}")
    expect(kept.size).to eq(5_000)
  end

  it "climbs back to the rate asked for when few live samples are left" do
    collector = new_collector(sample_rate: 1.0, max_heap_samples: 1000).start
    allocate(20_000).clear
    lowered = collector.stats[:effective_sample_rate]
    GC.start
    collector.flush
    expect(lowered).to be < 0.2
    expect(collector.stats[:effective_sample_rate]).to eq(1.0)
  end

  it "keeps a sample's weight when the rate changes" do
    collector = new_collector(sample_rate: 1.0).start
    kept = allocate(1000)
    collector.sample_rate = 0.0
    expect(Pprof.decode(collector.flush).by_class(:retained_objects)["Object"]).to eq(kept.size)
  end

  # Each iteration defines a method of its own, in a file of its own, and allocates in it.
  def run_generated_methods(count, code = "Object.new")
    Array.new(count) do |number|
      holder = Module.new
      # def self.run = Object.new
      holder.module_eval("def self.run = #{code}", "#{number}.rb") # rubocop:disable Style/EvalWithLocation
      holder.run
    end
  end

  it "stays within max_stack_bytes when code is generated without end, and counts all the same" do
    collector = new_collector(sample_rate: 1.0, max_stack_bytes: 1 << 20, seed: 1).start
    run_generated_methods(40_000)
    expect(collector.stats[:stack_bytes]).to be < 2 << 20
    expect(collector.stats[:stack_overflows]).to be > 0
    # Samples that wait to be swept may have been thinned: over seeds the standard deviation was about 1,100.
    expect(Pprof.decode(collector.flush).by_class(:allocations)["Object"]).to be_within(6 * 1100).of(40_000)
  end

  it "is thinned once, not to nothing, when a flush holds what it has named" do
    stub_const("Marker", Class.new)
    collector = new_collector(sample_rate: 1.0, max_stack_bytes: 1 << 20, max_heap_samples: 1_000_000, seed: 1).start
    # With the frames that the flush names there are too many; others allocate while it rests.
    kept = run_generated_methods(1500, "Marker.new")
    thread = Thread.new { loop { Object.new && Thread.pass } }
    data = collector.flush(max_hold: 0.0001, max_duration: 60)
    thread.kill.join
    expect(collector.stats[:halvings]).to be_between(1, 3)
    # Those that were not visited yet stand for two each.
    expect(Pprof.decode(data).by_class(:retained_objects)["Marker"]).to be_within(6 * 40).of(kept.size)
  end

  it "stays within max_stack_bytes with stacks that are read later" do
    collector = new_collector(sample_rate: 1.0, max_stack_bytes: 1 << 20, bt_method: :backtrace_locations).start
    # Nothing dies: how often the garbage collector runs must not decide how often samples are thinned.
    GC.disable
    run_generated_methods(20_000)
    expect(collector.stats[:stack_bytes]).to be < 2 << 20
    # What is left at 1/128 fits; where jobs are kept, their stacks are, and it is 13 at least.
    expect(collector.stats[:halvings]).to be_between(6, 8)
  ensure
    GC.enable
  end

  # In a process of its own: what is left on this one's stack would be held by that.
  it "lets go of the instruction sequences it has named" do
    outcome = run_ruby(<<~RUBY)
      require "objspace"
      collector = new_collector(sample_rate: 1.0).start
      GC.start
      before = ObjectSpace.count_imemo_objects[:imemo_iseq]
      2000.times do
        holder = Module.new
        holder.module_eval("def self.run = Object.new", __FILE__, __LINE__)
        holder.run
      end
      collector.flush
      GC.start
      print ObjectSpace.count_imemo_objects[:imemo_iseq] - before
    RUBY
    expect(outcome.stdout.to_i).to be < 100
    expect(outcome).to be_success
  end

  it "tells ObjectSpace how much memory it takes" do
    collector = new_collector(sample_rate: 1.0).start
    kept = allocate(10_000)
    expect(ObjectSpace.memsize_of(collector)).to be > collector.stats[:live_set_bytes]
    expect(collector.stats[:live_set_bytes]).to be_between(24 * kept.size, 60 * kept.size)
  end
end
