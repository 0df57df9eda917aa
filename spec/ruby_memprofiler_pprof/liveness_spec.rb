# frozen_string_literal: true

# The two ways to notice deaths are equivalent.
RSpec.describe MemprofilerPprof::Collector, "liveness", :liveness, :moving, :jit, :threads do
  def start_both(**options)
    %i[freeobj mark_bits].map do |liveness|
      MemprofilerPprof::Collector.new(liveness: liveness, max_heap_samples: 1_000_000, **options).start
    end
  end

  # Allocates and drops strings, arrays, hashes and objects at several lines.
  def run_at_random(random, kept, steps)
    steps.times do
      case random.rand(6)
      when 0 then kept << ("s" * random.rand(100))
      when 1 then kept << Array.new(random.rand(50))
      when 2 then kept << { random.rand(9) => 1 }
      when 3 then kept << Object.new
      else kept.delete_at(random.rand(kept.size)) if kept.any?
      end
    end
  end

  # A reference that one collection finds on the machine stack may be gone at the next: so there is none in between.
  def flush_after_gc(collectors)
    GC.start
    GC.disable
    collectors.map(&:flush).map { |data| Pprof.decode(data) }
  ensure
    GC.enable
  end

  # Retained objects and bytes per place and class, for what was allocated in this file.
  def retained(profile)
    profile.samples.each_with_object({}) do |sample, sums|
      next unless sample.frame?(/run_at_random/) && sample[:retained_objects].positive?

      sums[[sample.frames.map(&:line), sample.labels]] = [sample[:retained_objects], sample[:retained_size]]
    end
  end

  it "is the configured one, according to stats" do
    expect(start_both.map { |collector| collector.stats[:liveness] }).to eq(%i[freeobj mark_bits])
  end

  it "by default is mark_bits where this Ruby supports it" do
    expect(MemprofilerPprof::Collector.new.start.stats[:liveness]).to eq(:mark_bits)
  end

  4.times do |seed|
    it "retains the same at rate 1 in both modes (seed #{seed})" do
      random = Random.new(seed)
      both = start_both(sample_rate: 1.0)
      kept = []
      3.times do
        run_at_random(random, kept, 5000)
        GC.compact if seed == 3
        by_freeobj, by_mark_bits = flush_after_gc(both).map { |profile| retained(profile) }
        expect(by_mark_bits).to eq(by_freeobj)
        expect(by_freeobj.values.sum(&:first)).to be > 100
      end
    end
  end

  before { stub_const("Marker", Class.new) }

  it "is known in a process whose first collection comes later" do
    outcome = run_ruby(<<~RUBY, env: { **GcHelpers::ROOM, "SPEC_GC" => nil })
      raise "a collection has come" if GC.count.positive?
      collector = new_collector(sample_rate: 1.0, liveness: :mark_bits).start
      kept = Array.new(1000) { Object.new }
      5.times { GC.start }
      print collector.flush.heap_samples_count >= kept.size
    RUBY
    expect(outcome.stdout).to eq("true"), outcome.to_s
  end

  it "retains statistically the same at lower rates" do
    sums = [0, 0]
    20.times do |seed|
      both = start_both(sample_rate: 0.05, seed: seed)
      kept = Array.new(10_000) { Marker.new }
      profiles = flush_after_gc(both)
      profiles.each_with_index { |profile, index| sums[index] += profile.by_class(:retained_objects)["Marker"] }
      stop_collectors
      expect(kept.size).to eq(10_000)
    end
    # Twenty times a standard deviation of sqrt(10,000 * 0.95 / 0.05) each.
    expect(sums).to all(be_within(6 * Math.sqrt(20) * 436).of(200_000))
  end

  describe "of objects with methods of their own" do
    let(:greeting) { Module.new { def greet = [1].dup } }

    # How many of the objects that the block has been called with are alive, after each has allocated something in a
    # method of its own, and died.
    def alive_of(count)
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0).start
      objects = ObjectSpace::WeakMap.new
      count.times do
        object = Object.new
        yield object
        objects[object] = true
        object.greet
      end
      # Ruby 4.0 itself keeps what singleton classes refer to for a collection or two.
      3.times { GC.start }
      objects.size
    ensure
      collector.stop
    end

    it "does not keep those alive that have singleton methods" do
      expect(alive_of(100) { |object| def object.greet = [1].dup }).to be < 10
    end

    it "does not keep those alive that have methods made of blocks" do
      expect(alive_of(100) { |object| object.define_singleton_method(:greet) { [1].dup } }).to be < 10
    end

    it "does not keep those alive that are extended" do
      expect(alive_of(100) { |object| object.extend(greeting) }).to be < 10
    end
  end
end
