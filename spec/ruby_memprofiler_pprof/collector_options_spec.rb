# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Collector, "options", :liveness, :moving do
  # Each option with its default and another value.
  options = {
    sample_rate: [0.01, 0.5],
    sampling: %i[auto windows],
    window_frame: [nil, 0.25],
    window_duty: [0.03, 0.5],
    max_sampling_time: [0.002, 1.0],
    max_heap_samples: [50_000, 123],
    track_allocations: [true, false],
    bt_method: %i[cfp profile_frames],
    liveness: %i[auto freeobj],
    max_frames: [1000, 17],
    max_stack_bytes: [64 << 20, 1 << 20],
    object_class: [true, false],
    object_age: [false, true],
    labels: [true, false],
    thread_names: [false, true],
    track_peak: [false, true],
    sample_type_names: %i[ruby go],
    pretty_backtraces: [true, false],
    seed: [nil, 42],
    tags: [{}, { "release" => "1.2", "region" => "eu" }]
  }
  boolean = [/true or false/, [nil, 1, "true"], []]
  count = [/an Integer in 1\.\.\d+/, ["5", nil, 1.5], [0, -1, 2**70]]
  # The allowed values as a message must name them, values of a wrong type, and wrong values.
  wrong = {
    sample_rate: [/0\.0\.\.1\.0/, ["x", nil, :all, 1i], [2, -0.1, Float::NAN, Float::INFINITY, 1.000001, 10**30]],
    sampling: [/:auto or :always or :windows/, ["auto", nil], [:psychic]],
    window_frame: [/a number of seconds in 0\.001\.\.1\.0, or nil/, ["x", 1i], [0, 0.0009, 1.001, -1, Float::NAN]],
    window_duty: [/a number in 0\.01\.\.0\.5/, ["x", nil, 1i], [0, 0.009, 0.51, 1, Float::NAN]],
    max_sampling_time: [/a number in 0\.0001\.\.1\.0/, ["x", nil, 1i], [0, 0.00009, 1.1, Float::NAN]],
    max_heap_samples: count, max_frames: count,
    max_stack_bytes: [/an Integer in 1048576\.\.\d+/, ["5", nil, 1.5], [0, -1, 1000, 2**70]],
    seed: [/an Integer in 0\.\.\d+/, ["x", 1.5], [-1, 2**64]],
    track_allocations: boolean, object_class: boolean, object_age: boolean, labels: boolean, thread_names: boolean,
    track_peak: boolean, pretty_backtraces: boolean,
    bt_method: [/:cfp.*:profile_frames.*:backtrace_locations/, ["cfp", nil], [:psychic]],
    liveness: [/:auto.*:freeobj/, ["auto", nil], [:psychic]],
    sample_type_names: [/:ruby.*:go/, ["go", nil], [:python]],
    tags: [/a Hash whose names consist of letters/, ["a=b", { "a" => 1 }, { 1 => "a" }],
           [{ "a" => "" }, { "a" => "b,c" }, { "a" => "b=c" }, { "a" => "{" }, { "a" => "\n" }, { "a" => "b" * 257 },
            { "" => "b" }, { "__a" => "b" }, { "1" => "b" }, { "a b" => "c" }, { a: "1", "a" => "2" }]]
  }

  def allocate(count)
    Array.new(count) { Object.new }
  end

  it "are exactly those that are documented" do
    expect(described_class::OPTIONS).to match_array(options.keys)
  end

  options.each do |name, (default, other)|
    it "have the default #{default.inspect} for #{name}" do
      expect(described_class.new.public_send(name)).to eq(default)
    end

    it "take #{name} in the constructor" do
      expect(described_class.new(name => other).public_send(name)).to eq(other)
    end

    it "allow changing #{name}, and changing it back, while the collector runs" do
      collector = new_collector(sample_rate: 1.0).start
      found = [other, default].map do |value|
        collector.public_send(:"#{name}=", value)
        collector.public_send(name)
      end
      expect(found).to eq([other, default])
      expect(collector).to be_running
    end
  end

  wrong.each do |name, (allowed, types, values)|
    [*types.product([TypeError]), *values.product([ArgumentError])].each do |value, error|
      it "raise #{error} for #{name}: #{value.inspect}, with a message that helps" do
        expect { described_class.new(name => value) }.to raise_error(error) { |raised|
          expect(raised.message).to match(/\A#{name} must be .*#{allowed}.*, got #{Regexp.escape(value.inspect)}\z/)
        }
      end
    end

    it "raise in #{name}=, too, and keep the old value" do
      collector = new_collector(sample_rate: 1.0).start
      before = collector.public_send(name)
      expect { collector.public_send(:"#{name}=", types.first) }.to raise_error(TypeError, /\A#{name} must be /)
      expect(collector.public_send(name)).to eq(before)
    end
  end

  it "raise ArgumentError for an unknown keyword" do
    expect { described_class.new(sample_rat: 1) }
      .to raise_error(ArgumentError, /:sample_rat\b.*allowed.*sample_rate.*max_heap_samples/)
  end

  it "raise ArgumentError for a keyword that is a String, or a positional argument" do
    expect { described_class.new("sample_rate" => 1) }.to raise_error(ArgumentError, /"sample_rate"/)
    expect { described_class.new(0.5) }.to raise_error(ArgumentError)
  end

  it "take any Numeric as sample_rate" do
    expect([1, 1/4r, 0.5].map { |rate| described_class.new(sample_rate: rate).sample_rate }).to eq([1.0, 0.25, 0.5])
  end

  describe "sample_rate" do
    it "weights the samples from the beginning, whatever the default" do
      expect(Pprof.decode(new_collector(sample_rate: 0.5).profile { nil }).comments).to include("greatest_weight=2")
    end

    it "takes no samples at 0.0" do
      collector = new_collector(sample_rate: 0.0)
      profile = Pprof.decode(collector.profile { allocate(10_000) })
      expect([profile.samples, collector.stats[:samples]]).to eq([[], 0])
    end

    it "can be changed while the collector runs" do
      collector = new_collector(sample_rate: 0.0).start
      allocate(1000)
      collector.sample_rate = 1.0
      kept = allocate(10)
      expect(Pprof.decode(collector.flush).by_class(:allocations)["Object"]).to eq(kept.size)
    end
  end

  describe "max_heap_samples" do
    it "bounds the live samples" do
      collector = new_collector(sample_rate: 1.0, max_heap_samples: 50).start
      kept = allocate(1000)
      expect(collector.live_heap_samples_count).to be_between(1, 50)
      expect(kept.size).to eq(1000)
    end
  end

  describe "seed" do
    # Neither process may allocate or free one object more or less while the collector runs.
    let(:program) { <<~RUBY }
      GC.disable
      def work(turns)
        i = 0
        while i < turns
          Object.new
          Object.new
          i += 1
        end
      end
      work(10)
      collector = new_collector(sample_rate: 0.01, seed: Integer(ARGV[0])).start
      work(20_000)
      collector.stop
      $stdout.binmode.write(collector.flush.pprof_data)
    RUBY

    def samples(seed)
      outcome = run_ruby(program, args: [seed.to_s])
      expect(outcome).to be_success, outcome.to_s
      Pprof.decode(outcome.stdout.b).samples.map { |sample| [sample.frames.map(&:to_a), sample.labels, sample.values] }
    end

    it "makes two processes sample the same objects" do
      expect(samples(1)).to eq(samples(1))
    end

    it "makes another choice if it differs" do
      expect(samples(1)).not_to eq(samples(2))
    end
  end

  describe "max_frames" do
    def down(levels)
      levels.zero? ? Object.new : down(levels - 1)
    end

    def raise_down(levels)
      raise
    rescue RuntimeError
      levels.zero? ? Object.new : raise_down(levels - 1)
    end

    def names(levels, method = :down, **options)
      profile = profile_of(**options) { Thread.new { __send__(method, levels) }.join }
      profile.samples.find { |sample| sample.labels["class"] == "Object" && sample.names[1].end_with?("down") }.names
    end

    %i[cfp profile_frames].each do |bt_method|
      it "replaces the outermost frames of deeper stacks by (truncated) with #{bt_method}" do
        *inner, outermost = names(50, max_frames: 20, bt_method: bt_method)
        expect(outermost).to eq("(truncated)")
        expect(inner.count { |name| name.end_with?("down") }).to be_between(14, 20)
      end
    end

    it "leaves a stack of exactly that depth alone" do
      whole = names(3)
      cut = [whole.size, whole.size - 1].map { |limit| names(3, max_frames: limit).last == "(truncated)" }
      expect(cut).to eq([false, true])
    end

    it "also says (truncated) where it cuts a rescue body off from its method" do
      outermost = (16..24).map { |limit| names(50, :raise_down, max_frames: limit).last }
      expect(outermost.uniq).to eq(["(truncated)"])
    end
  end

  describe "object_age" do
    it "adds the number of garbage collections survived as gc_age, with a unit" do
      collector = new_collector(sample_rate: 1.0, object_age: true).start
      old = allocate(5)
      2.times { GC.start }
      # Nothing may be collected from here on.
      GC.disable
      young = allocate(7)
      samples = Pprof.decode(collector.flush).samples.select { |sample| sample.labels["class"] == "Object" }
      expect(samples.to_h { |sample| [sample.labels["gc_age"], sample[:retained_objects]] })
        .to eq(2 => old.size, 0 => young.size)
      expect(samples.map { |sample| sample.label_units["gc_age"] }.uniq).to match([/\w/])
    ensure
      GC.enable
    end

    it "quantises ages to powers of two" do
      collector = new_collector(sample_rate: 1.0, object_age: true).start
      kept = allocate(5)
      7.times { GC.start }
      found = Pprof.decode(collector.flush).samples.find { |sample| sample[:retained_objects] == kept.size }
      # There may be one or two additional minor collections.
      expect(found.labels["gc_age"]).to eq(4).or eq(8)
    end
  end

  it "leave out the label class with object_class: false" do
    profile = profile_of(object_class: false) { @kept = [allocate(10), Array.new(10) { +"x" }] }
    expect(profile.samples.flat_map { |sample| sample.labels.keys }).to eq([])
    expect(profile.total(:retained_objects)).to be >= 20
  end

  it "leave out what was allocated with track_allocations: false, but not what is retained" do
    profile = profile_of(track_allocations: false) { @kept = allocate(10) }
    expect(%i[allocations allocations_size].map { |type| profile.total(type) }).to eq([0, 0])
    expect(profile.by_class["Object"]).to eq(10)
  end

  it "leave out classes with pretty_backtraces: false" do
    profile = profile_of(pretty_backtraces: false) { allocate(10) }
    sample = profile.samples.find { |found| found.labels["class"] == "Object" }
    # Array has its own `new`, which always has a frame.
    expect(sample.names.take_while { |name| name != "allocate" })
      .to eq([*ClassNew.frames("new"), "block in allocate", "initialize", "new"])
  end

  it "use Go's names for the values with sample_type_names: :go" do
    profile = profile_of(sample_type_names: :go) { @kept = allocate(10) }
    expect(profile).to have_attributes(type_names: %w[alloc_objects alloc_space inuse_objects inuse_space],
                                       default_sample_type: "inuse_space",
                                       period_type: Pprof::ValueType.new("space", "bytes"))
    expect(profile.by_class(:inuse_objects)["Object"]).to eq(10)
  end
end

RSpec.describe MemprofilerPprof::Collector, "life", :liveness, :moving, :threads do
  subject(:collector) { new_collector(sample_rate: 1.0) }

  def allocate(count)
    Array.new(count) { Object.new }
  end

  def allocated(profile)
    Pprof.decode(profile).by_class(:allocations).fetch("Object", 0)
  end

  it "begins and ends with start and stop, which return the collector" do
    states = [collector.running?, collector.start.running?, collector.stop.running?]
    expect(states).to eq([false, true, false])
    expect([collector.start!, collector.stop!]).to eq([collector, collector])
  end

  it "is the same if it is started twice" do
    collector.start.start
    allocate(10)
    expect(allocated(collector.flush)).to eq(10)
    expect(MemprofilerPprof.collectors).to eq([collector])
  end

  it "does not begin with a stop" do
    expect(collector.stop).to equal(collector)
    expect { collector.flush }.to raise_error(MemprofilerPprof::NotStartedError, /start/)
  end

  it "continues after a stop with the next start" do
    collector.start.stop
    allocate(5)
    collector.start
    allocate(3)
    expect(allocated(collector.flush)).to eq(3)
  end

  it "ends with the flush after a stop: another one gives an empty profile" do
    kept = collector.profile { @kept = allocate(10) }
    expect([allocated(kept), Pprof.decode(collector.flush).samples]).to eq([10, []])
  end

  it "ends with the block of profile, also when that raises" do
    expect { collector.profile { allocate(10) && raise("oops") } }.to raise_error(RuntimeError, "oops")
    expect(collector).not_to be_running
    expect(Pprof.decode(collector.flush).samples).to eq([])
  end

  it "requires a block for profile" do
    expect { collector.profile }.to raise_error(ArgumentError, /block/)
    expect(collector).not_to be_running
  end

  it "begins on the main Ractor only" do
    outcome = run_ruby(<<~RUBY, options: ["-W0"])
      ractor = Ractor.new do
        MemprofilerPprof::Collector.new.start
        "started"
      rescue MemprofilerPprof::Error => e
        "\#{e.class}: \#{e.message}"
      end
      print ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
    expect(outcome.stdout).to match(/\AMemprofilerPprof::RactorError: .*main Ractor/), outcome.to_s
  end

  it "belongs to one object, which cannot be copied" do
    %i[dup clone].each do |copy|
      expect { collector.public_send(copy) }.to raise_error(TypeError, /cannot be copied/)
    end
  end

  it "raises errors that are all MemprofilerPprof::Error, a StandardError" do
    expect([MemprofilerPprof::NotStartedError, MemprofilerPprof::RactorError].map(&:superclass).uniq)
      .to eq([MemprofilerPprof::Error])
    expect(MemprofilerPprof::Error).to be < StandardError
  end
end
