# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Collector, "options" do
  # Each option with its default and another value.
  options = {
    sample_rate: [0.01, 0.5],
    max_heap_samples: [50_000, 123],
    track_allocations: [true, false],
    bt_method: %i[cfp profile_frames],
    liveness: %i[auto freeobj],
    max_frames: [1000, 17],
    object_class: [true, false],
    object_age: [false, true],
    sample_type_names: %i[ruby go],
    pretty_backtraces: [true, false],
    seed: [nil, 42]
  }
  wrong_types = {
    sample_rate: ["x", nil, :all, Complex(0, 1)],
    max_heap_samples: ["5", nil, 1.5],
    max_frames: ["5", nil, 1.5],
    seed: ["x", 1.5],
    track_allocations: [nil, 1], object_class: [nil, "true"], object_age: [nil, 0], pretty_backtraces: [nil, :yes],
    bt_method: ["cfp", nil], liveness: ["auto", nil], sample_type_names: ["go", nil]
  }
  wrong_values = {
    sample_rate: [2, -0.1, Float::NAN, Float::INFINITY, 1.000001, 10**30],
    max_heap_samples: [0, -1, 2**70], max_frames: [0, -1, 2**70], seed: [-1, 2**64],
    bt_method: [:psychic], liveness: [:psychic], sample_type_names: [:python]
  }
  # What a message must say is allowed.
  allowed = {
    sample_rate: /0\.0\.\.1\.0/, max_heap_samples: /Integer in 1\.\.\d+/, max_frames: /Integer in 1\.\.\d+/,
    seed: /Integer in 0\.\.\d+/, track_allocations: /true or false/, object_class: /true or false/,
    object_age: /true or false/, pretty_backtraces: /true or false/,
    bt_method: /:cfp.*:profile_frames.*:backtrace_locations/, liveness: /:auto.*:freeobj/,
    sample_type_names: /:ruby.*:go/
  }

  def allocate(count)
    Array.new(count) { Object.new }
  end

  it "are all of those that are documented" do
    expect(described_class::OPTIONS).to match_array(options.keys)
  end

  options.each do |name, (default, other)|
    it "have the default #{default.inspect} for #{name}" do
      expect(described_class.new.public_send(name)).to eq(default)
    end

    it "take #{name} in the constructor" do
      expect(described_class.new(name => other).public_send(name)).to eq(other)
    end

    it "let #{name} be changed, also back, while the collector runs" do
      collector = new_collector(sample_rate: 1.0).start
      found = [other, default].map do |value|
        collector.public_send(:"#{name}=", value)
        collector.public_send(name)
      end
      expect(found).to eq([other, default])
      expect(collector).to be_running
    end
  end

  [[wrong_types, TypeError], [wrong_values, ArgumentError]].each do |table, error|
    table.each do |name, values|
      values.each do |value|
        it "raise #{error} for #{name}: #{value.inspect}, with a message that helps" do
          expect { described_class.new(name => value) }.to raise_error(error) { |raised|
            expect(raised.message).to start_with("#{name} must be ")
              .and match(allowed.fetch(name)).and end_with("got #{value.inspect}")
          }
        end
      end

      it "raise #{error} in #{name}=, too, and keep the old value" do
        collector = new_collector
        before = collector.public_send(name)
        expect { collector.public_send(:"#{name}=", values.first) }.to raise_error(error, /\A#{name} must be /)
        expect(collector.public_send(name)).to eq(before)
      end
    end
  end

  it "raise ArgumentError for a keyword that is none of them" do
    expect { described_class.new(sample_rat: 1) }
      .to raise_error(ArgumentError, /:sample_rat\b.*allowed.*sample_rate.*max_heap_samples/)
  end

  it "raise ArgumentError for a keyword that is a String" do
    expect { described_class.new("sample_rate" => 1) }.to raise_error(ArgumentError, /"sample_rate"/)
  end

  it "raise ArgumentError for a positional argument" do
    expect { described_class.new(0.5) }.to raise_error(ArgumentError)
  end

  it "take any Numeric as sample_rate" do
    expect([1, 1/4r, 0.5].map { |rate| described_class.new(sample_rate: rate).sample_rate }).to eq([1.0, 0.25, 0.5])
  end

  describe "sample_rate" do
    it "takes no sample at 0.0" do
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
    # Prints how many objects of each line are in the profile.
    let(:program) { <<~RUBY }
      def work(turns)
        i = 0
        while i < turns
          Object.new
          Object.new
          Object.new
          i += 1
        end
      end
      work(10)
      collector = MemprofilerPprof::Collector.new(sample_rate: 0.01, seed: Integer(ARGV[0])).start
      work(20_000)
      collector.stop
      collector.flush.write("/dev/stdout")
    RUBY

    def samples(seed)
      outcome = run_ruby(program, args: [seed.to_s])
      expect(outcome).to be_success, outcome.to_s
      Pprof.decode(outcome.stdout.b).samples.map { |sample| [sample.frames.map(&:to_a), sample.labels, sample.values] }
    end

    it "makes two processes sample the same" do
      expect(samples(1)).to eq(samples(1))
    end

    it "makes another choice if it is another" do
      expect(samples(1)).not_to eq(samples(2))
    end
  end
end
