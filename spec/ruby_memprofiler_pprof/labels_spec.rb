# frozen_string_literal: true

RSpec.describe MemprofilerPprof, "labels", :liveness, :moving, :stress, :threads do
  before do
    stub_const("Marker", Class.new)
    stub_const("KEPT", [])
  end

  def with_labels(...) = described_class.with_labels(...)

  # The label sets of the live Markers, each with their count.
  def counts(profile, type: :retained_objects)
    markers = profile.samples.select { |sample| sample.labels["class"] == "Marker" && sample[type].positive? }
    markers.group_by { |sample| sample.labels.except("class") }
           .transform_values { |samples| samples.sum { |sample| sample[type] } }
  end

  def keep(count = 1) = count.times { KEPT << Marker.new }

  it "are on what the block allocates, and on nothing else" do
    profile = profile_of do
      keep 2
      with_labels(endpoint: "users#show", tenant: 7) { keep 3 }
      keep 4
    end
    expect(counts(profile)).to eq({} => 6, { "endpoint" => "users#show", "tenant" => "7" } => 3)
  end

  it "stay on what is alive long after" do
    collector = new_collector(sample_rate: 1.0).start
    with_labels(a: "1") { keep 3 }
    3.times do
      GC.start
      collector.flush
    end
    expect(counts(Pprof.decode(collector.flush))).to eq({ "a" => "1" } => 3)
  end

  it "are also on what has died" do
    profile = profile_of do
      with_labels(a: "1") { 5.times { Marker.new } }
      GC.start
    end
    expect(counts(profile, type: :allocations)).to eq({ "a" => "1" } => 5)
  end

  # Files with many labels would be three times as long.
  it "leave the samples of a stack together" do
    two_ways = [-> { keep }, -> { keep }]
    profile = profile_of { 20.times { |number| with_labels(number: number) { two_ways[number % 2].call } } }
    stacks = profile.samples.map(&:frames)
    expect(stacks.chunk_while { |a, b| a == b }.count).to eq(stacks.uniq.size)
  end

  it "add to those of an outer block" do
    profile = profile_of { with_labels(a: 1) { with_labels("b" => :x) { keep } } }
    expect(counts(profile)).to eq({ "a" => "1", "b" => "x" } => 1)
  end

  it "replace those of an outer block, until the inner one ends" do
    profile = profile_of do
      with_labels(a: 1) do
        with_labels(a: 2) { keep 2 }
        keep 1
      end
    end
    expect(counts(profile)).to eq({ "a" => "2" } => 2, { "a" => "1" } => 1)
  end

  it "are removed by nil" do
    profile = profile_of { with_labels(a: 1, b: 2) { with_labels(a: nil) { keep } } }
    expect(counts(profile)).to eq({ "b" => "2" } => 1)
  end

  it "end with a block that raises" do
    profile = profile_of do
      with_labels(a: 1) { raise ArgumentError }
    rescue ArgumentError
      keep
    end
    expect(counts(profile)).to eq({} => 1)
  end

  it "end when throw leaves the block" do
    catch(:out) { with_labels(a: 1) { throw :out } }
    expect(described_class.labels).to eq({})
  end

  it "apply in their fiber, whatever runs in between" do
    profile = profile_of do
      fiber = Fiber.new do
        with_labels(in: "fiber") do
          keep 1
          Fiber.yield
          keep 1
        end
      end
      with_labels(in: "main") do
        fiber.resume
        keep 5
        fiber.resume
      end
    end
    expect(counts(profile)).to eq({ "in" => "fiber" } => 2, { "in" => "main" } => 5)
  end

  it "apply in their thread only" do
    profile = profile_of { with_labels(a: 1) { Thread.new { keep 2 }.join } }
    expect(counts(profile)).to eq({} => 2)
  end

  it "are not inherited from a fiber that was abandoned inside the block" do
    profile = profile_of do
      2000.times do
        Fiber.new { with_labels(left: "behind") { Fiber.yield } }.resume
        GC.start if rand(100).zero?
        Fiber.new { keep }.resume
      end
    end
    expect(counts(profile)).to eq({} => 2000)
  end

  it "do not split equal frames" do
    profile = profile_of { 2.times { |n| with_labels(n: n) { keep } } }
    places = profile.samples.select { |sample| sample.labels["n"] && sample.labels["class"] == "Marker" }
    expect(places.map(&:frames).uniq.size).to eq(1)
  end

  it "are on truncated stacks" do
    deeper = ->(depth) { depth.zero? ? keep : deeper.call(depth - 1) }
    profile = profile_of(max_frames: 10) { with_labels(a: 1) { deeper.call(50) } }
    expect(counts(profile)).to eq({ "a" => "1" } => 1)
  end

  %i[profile_frames backtrace_locations].each do |method|
    it "are on stacks read by #{method}" do
      profile = profile_of(bt_method: method) { with_labels(a: 1) { 3.times { keep } } }
      expect(counts(profile)).to eq({ "a" => "1" } => 3)
    end
  end

  it "are left out if the collector is configured so" do
    profile = profile_of(labels: false) { with_labels(a: 1) { keep } }
    expect(counts(profile)).to eq({} => 1)
  end

  it "are forgotten with the last sample that has them" do
    collector = new_collector(sample_rate: 1.0).start
    100.times { |n| with_labels(n: n) { Marker.new } }
    2.times do
      GC.start
      collector.flush
    end
    expect(collector.stats).to include(label_sets: be < 10)
  end

  # Under GC.stress it takes a minute, and shows no more than the others.
  it "are bounded in number, and too many are reported", stress: false do
    collector = new_collector(sample_rate: 1.0, max_heap_samples: 200_000).start
    10_050.times { |n| with_labels(n: n) { keep } }
    sets = counts(Pprof.decode(collector.flush))
    expect(sets.size).to be_between(9_990, 10_001)
    expect(sets.fetch({ "labels" => "(not kept)" })).to be_between(49, 60)
    expect(collector.stats).to include(label_overflows: be >= 50)
  end

  it "survive compaction", if: GC.respond_to?(:compact) do
    profile = profile_of do
      with_labels(a: 1) do
        GC.compact
        keep
      end
    end
    expect(counts(profile)).to eq({ "a" => "1" } => 1)
  end

  it "are readable by go tool pprof", :go do
    data = new_collector(sample_rate: 1.0).profile { with_labels(endpoint: "users#show") { keep 3 } }
    expect(Pprof::GoPprof.run(data, "-tags", "-sample_index=retained_objects").stdout)
      .to match(/endpoint: .*\n.*users#show/)
  end

  describe ".labels" do
    it "returns the current ones" do
      expect(with_labels(a: 1, "b" => "ü") { described_class.labels }).to eq(a: "1", b: "ü")
    end

    it "is empty if there are none" do
      expect(described_class.labels).to eq({})
    end
  end

  describe ".with_labels" do
    it "returns the block's value" do
      expect(with_labels(a: 1) { 42 }).to eq(42)
    end

    it "takes a Hash" do
      expect(with_labels({ "a b" => true }) { described_class.labels }).to eq("a b": "true")
    end

    it "truncates long values at a character boundary" do
      expect(with_labels(a: "a#{"ü" * 300}") { described_class.labels[:a] }).to eq("a#{"ü" * 127}")
    end

    it "replaces invalid bytes" do
      expect(with_labels(a: "\xFF", b: "\xFF".b.to_sym) { described_class.labels }).to eq(a: "\uFFFD", b: "\uFFFD")
    end

    it "converts Symbols of other encodings" do
      expect(with_labels(a: "café".encode("ISO-8859-1").to_sym) { described_class.labels }).to eq(a: "café")
    end

    it "leaves the stack of labels as it was if a label is wrong" do
      with_labels(a: 1) do
        expect { with_labels(b: 2, c: Object.new) { nil } }.to raise_error(TypeError, /label c must be a String/)
        expect(described_class.labels).to eq(a: "1")
      end
    end

    it "requires a block" do
      expect { with_labels(a: 1) }.to raise_error(ArgumentError, "with_labels needs a block")
    end

    it "requires a Hash" do
      expect { with_labels("a") { nil } }.to raise_error(TypeError, 'labels must be a Hash of keys and values, got "a"')
    end

    ["class", :gc_age, "pprof::x", "", "k" * 257].each do |key|
      it "refuses the key #{key.to_s[0, 10].inspect}" do
        expect { with_labels({ key => 1 }) { nil } }.to raise_error(ArgumentError, /label key must be .*, got /)
      end
    end

    it "refuses a key that is neither Symbol nor String" do
      expect { with_labels({ 1 => 1 }) { nil } }.to raise_error(TypeError, /label key must be .*, got 1/)
    end

    it "refuses more than 16" do
      labels = Array.new(17) { |n| ["k#{n}", n] }.to_h
      expect { with_labels(labels) { nil } }.to raise_error(ArgumentError, /at most 16 labels/)
    end
  end

  # The fiber keeps them in a variable, which Thread#keys lists.
  it "can be inspected, and passed on by code that copies a thread's variables" do
    outcome = run_ruby(<<~'RUBY')
      MemprofilerPprof.with_labels(a: "1") do
        variables = Thread.current.keys.to_h { |key| [key, Thread.current[key]] }
        puts variables.values.map { |value| value.inspect[/\w+::\w+/] }
        Thread.new do
          variables.each { |key, value| Thread.current[key] = value }
          p MemprofilerPprof.labels.size
        end.join
      end
    RUBY
    expect(outcome.stdout).to eq("MemprofilerPprof::LabelSet\n1\n"), outcome.to_s[0, 300]
  end
end
