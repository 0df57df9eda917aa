# frozen_string_literal: true

# When the VM does not report garbage collections, and when it does although it may look as if it did not.
RSpec.describe MemprofilerPprof::Collector, "integrity", :liveness, :moving, :threads do
  let(:collector) { new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start }

  def missed
    collector.flush
    collector.stats[:missed_collections]
  end

  # A program in which a foreign NEWOBJ hook allocates so much memory that most collections begin inside it. Up to Ruby
  # 3.3 no hook sees those.
  def collected_inside_a_hook(code)
    environment = { "RUBY_GC_HEAP_INIT_SLOTS" => "1000000", "RUBY_GC_MALLOC_LIMIT" => "300000",
                    "RUBY_GC_MALLOC_LIMIT_MAX" => "300000", "SPEC_LIVENESS" => ENV.fetch("SPEC_LIVENESS", "") }
    reader = File.expand_path("../support/pprof", __dir__)
    outcome = run_ruby(<<~RUBY, env: environment, options: ["-r#{reader}"])
      require "objspace"
      liveness = ENV["SPEC_LIVENESS"].empty? ? {} : { liveness: ENV["SPEC_LIVENESS"].to_sym }
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, max_heap_samples: 1_000_000, **liveness).start
      kept = Array.new(500) { Object.new }
      ObjectSpace.trace_object_allocations { 200_000.times { +"x" } }
      #{code}
    RUBY
    expect(outcome).to be_success, outcome.to_s
    outcome.stdout
  end

  context "with collections that began inside a hook", if: RUBY_VERSION < "3.4" do
    # The result of one flush, and how many collections it says were missed.
    outcome = nil
    define_method(:flushed) do
      outcome ||= collected_inside_a_hook(<<~RUBY).b.split("\n", 2)
        profile = collector.flush.pprof_data
        puts collector.stats[:missed_collections]
        $stdout.binmode.write(profile)
      RUBY
      [Pprof.decode(outcome.last), outcome.first.to_i]
    end

    it "notices them" do
      expect(flushed.last).to be > 0
    end

    it "keeps no object that may be dead, and tracks newer ones" do
      # Strings after the last missed collection may be alive; whether there are any is up to the VM.
      counts = collected_inside_a_hook(<<~RUBY)
        print Pprof.decode(collector.flush.pprof_data).by_class.fetch("Object", 0), " "
        more = Array.new(1000) { Object.new }
        GC.start
        print collector.flush.heap_samples_count
      RUBY
      expect(counts.split.map(&:to_i)).to match([be < 50, be_between(1000, 1200)])
    end

    it "keeps its data on allocations" do
      expect(flushed.first.by_class(:allocations)).to include("Object" => be >= 500, "String" => be >= 200_000)
    end

    it "reports them in the profile" do
      expect(flushed.first.comments).to include(/\Amissed_collections=/)
    end
  end

  it "raises no false alarm at collections of all kinds" do
    collector
    50.times do |round|
      Array.new(2000) { +"x" }
      GC.start(full_mark: round.even?, immediate_sweep: round % 3 == 0)
      GC.compact if (round % 10).zero?
    end
    expect(missed).to eq(0)
  end

  it "raises no false alarm at finalizers" do
    collector
    1000.times { ObjectSpace.define_finalizer(Object.new, proc { Array.new(10) }) }
    GC.start
    GC.start
    expect(missed).to eq(0)
  end

  it "raises no false alarm when a collection begins while the first collector of a process starts" do
    outcome = run_ruby(<<~RUBY)
      collector = new_collector(sample_rate: 1.0)
      # The block's output in a child of this process: all begin with the same heap.
      in_child = lambda do |&block|
        IO.popen("-") { |io| io ? io.read : (print(block.call); $stdout.flush; exit!) }.to_i
      end
      allocated = -> { GC.stat(:total_allocated_objects) }
      due = in_child.call do
        before = GC.count
        nil while Object.new && GC.count == before
        allocated.call
      end
      # The collection begins later and later within `start`.
      counts = Array.new(100) do |step|
        in_child.call do
          (due - allocated.call - (3 * step)).times { Object.new }
          collector.start
          collector.flush
          collector.stats[:missed_collections]
        end
      end
      print counts.sum
    RUBY
    expect(outcome.stdout).to eq("0"), outcome.to_s
  end

  it "raises no false alarm when started and flushed in the middle of a cycle" do
    counts = Array.new(30) do
      other = new_collector(sample_rate: 1.0)
      Array.new(3000) { +"x" }
      other.start
      Array.new(rand(3000)) { +"x" }
      other.flush
      other.stats[:missed_collections]
    end
    expect(counts).to all(eq(0))
  end
end
