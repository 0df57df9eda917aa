# frozen_string_literal: true

require "objspace"

# The flush asks extensions for the size of their objects, which runs those extensions' code.
RSpec.describe MemprofilerPprof::Collector, "with objects that misbehave when asked for their size",
               :liveness, :moving, :threads do
  before do
    reason = CompiledExtension.missing
    skip reason if reason
  end

  # The flushes' profiles, how often sizes were requested, and how many collections were missed.
  let(:hostility) { Struct.new(:profiles, :calls, :missed) }

  # The results of two flushes, with 200 hostile objects among 2,000 ordinary ones, half of which are created between
  # the flushes.
  def flushes_of(kind, before: "", after: "")
    outcome = run_ruby(<<~RUBY, args: [CompiledExtension.new("hostile").library, kind])
      require ARGV.first
      Marker = Class.new
      hostile = Hostile.const_get(ARGV.last)
      allocate = ->(count) { Array.new(count) { |i| (i % 11).zero? ? hostile.new : Marker.new } }
      $collector = collector = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start
      #{before}
      kept = allocate.call(1100)
      profiles = [collector.flush.pprof_data]
      kept.concat(allocate.call(1100))
      profiles << collector.flush.pprof_data
      #{after}
      $stdout.binmode.write(Marshal.dump([profiles, Hostile.calls, collector.stats[:missed_collections]]))
    RUBY
    raise outcome.to_s unless outcome.success?

    profiles, calls, missed = Marshal.load(outcome.stdout.b) # rubocop:disable Security/MarshalLoad
    hostility.new(profiles.map { |profile| Pprof.decode(profile) }, calls, missed)
  end

  # The same with nothing added: one program serves all examples of a kind.
  answers = {}
  define_method(:answer) { |kind| answers[kind] ||= flushes_of(kind) }

  # What the second flush reports about a class.
  def total_of(class_name, type, kind)
    answer(kind).profiles[1].by_class(type).fetch(class_name, 0)
  end

  def counts(profile, type)
    profile.by_class(type).values_at("Marker", "Hostile::#{kind}")
  end

  shared_examples "an object like any other" do
    let(:result) { answer(kind) }

    it "asks each of them at each flush" do
      expect(result.calls).to be >= 300
    end

    it "counts what is alive" do
      expect([counts(result.profiles[0], :retained_objects), counts(result.profiles[1], :retained_objects)])
        .to eq([[1000, 100], [2000, 200]])
    end

    it "counts what was allocated" do
      expect([counts(result.profiles[0], :allocations), counts(result.profiles[1], :allocations)])
        .to eq([[1000, 100], [1000, 100]])
    end

    it "measures ordinary objects as if they were alone" do
      size = result.profiles[1].by_class(:retained_size).fetch("Marker")
      expect(size).to eq(2000 * ObjectSpace.memsize_of(Object.new))
    end

    it "misses no collection" do
      expect(result.missed).to eq(0)
    end
  end

  %w[Allocating Raising Switching Collecting Flushing Huge].each do |kind|
    context "when they are #{kind.downcase}" do
      let(:kind) { kind }

      it_behaves_like "an object like any other"
    end
  end

  it "does not count what they allocate when asked for their size" do
    expect(total_of("String", :allocations, "Allocating")).to be < 200
  end

  it "counts each object that another thread allocates meanwhile" do
    before = <<~RUBY
      Other = Class.new
      thread = Thread.new { 300_000.times { Other.new } }
    RUBY
    result = flushes_of("Switching", before: before, after: "thread.join; profiles << collector.flush.pprof_data")
    expect(result.profiles.sum { |profile| profile.by_class(:allocations).fetch("Other", 0) }).to eq(300_000)
  end

  it "adds up huge sizes without overflow" do
    expect(total_of("Hostile::Huge", :retained_size, "Huge")).to be >= (2**63) / 3 * 2
  end

  # What another thread raises arrives where this one switches.
  { "an exception" => "raise(IOError)", "a kill" => "kill" }.each do |name, blow|
    it "does not take #{name} from another thread for the extension's own" do
      after = <<~RUBY
        Thread.new { loop { Thread.pass } }
        begun = Queue.new
        5.times do
          victim = Thread.new { begun << true; loop { collector.flush } }
          victim.report_on_exception = false
          begun.pop
          victim.#{blow}
          # Waits forever for a thread that survives.
          victim.join
        rescue IOError
          nil
        end
      RUBY
      expect { flushes_of("Switching", after: after) }.not_to raise_error
    end
  end

  it "uses the size of the slot for those that raise" do
    expect(total_of("Hostile::Raising", :retained_size, "Raising")).to eq(200 * 40)
  end
end
