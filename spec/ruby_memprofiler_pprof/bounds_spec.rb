# frozen_string_literal: true

require "objspace"

RSpec.describe MemprofilerPprof::Collector, "bounds", :liveness, :moving do
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

  it "samples at the rate that was asked for when it is started again" do
    collector = new_collector(sample_rate: 1.0, max_heap_samples: 1000, seed: 1).start
    kept = allocate(50_000)
    collector.stop.flush
    expect(collector.start.stats[:effective_sample_rate]).to eq(1.0)
    expect(kept.size).to eq(50_000)
  end

  it "estimates without bias despite halvings" do
    estimates = (1..30).map do |seed|
      kept = nil
      profile = profile_of(sample_rate: 1.0, max_heap_samples: 1000, seed: seed) { kept = allocate(20_000) }
      profile.by_class(:retained_objects)["Object"]
    end
    # Some 600 samples each: a standard deviation of about 800, that of the mean of thirty is about 150.
    expect(estimates.sum / 30.0).to be_within(6 * 150).of(20_000)
  end

  # With so few samples it shows if a single one is recorded at another rate than it was selected with.
  [4, 10].each do |bound|
    it "estimates without bias with no more than #{bound} samples" do
      stub_const("Marker", Class.new)
      kept = nil
      estimates = Array.new(400) do |seed|
        profile = profile_of(sample_rate: 1.0, max_heap_samples: bound, seed: seed) do
          kept = Array.new(200) { Marker.new }
        end
        profile.by_class(:retained_objects).fetch("Marker", 0)
      end
      mean = estimates.sum.fdiv(estimates.size)
      variance = estimates.sum { |estimate| (estimate - mean)**2 } / (estimates.size - 1)
      expect(mean).to be_within(4 * Math.sqrt(variance / estimates.size)).of(kept.size)
    end
  end

  it "reports how many samples were dropped" do
    collector = new_collector(sample_rate: 1.0, max_heap_samples: 1000).start
    kept = allocate(5_000)
    data = collector.flush
    expect(data.dropped_samples_heap_bufsize).to be > 1000
    expect(Pprof.decode(data).comments).to include("thinned_samples=#{data.dropped_samples_heap_bufsize}")
    expect(kept.size).to eq(5_000)
  end

  it "returns to the configured rate when few live samples are left" do
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

  # A module with a method `run` in a file of its own, which allocates.
  def generated_module(number)
    Module.new.tap do |holder|
      holder.module_eval("def self.run = Object.new", "#{number}.rb") # rubocop:disable Style/EvalWithLocation
    end
  end

  def run_generated_methods(count)
    Array.new(count) { |number| generated_module(number).run }
  end

  it "stays within max_stack_bytes while code is generated without end, and still counts correctly" do
    collector = new_collector(sample_rate: 1.0, max_stack_bytes: 1 << 20, seed: 1).start
    run_generated_methods(40_000)
    expect(collector.stats[:stack_bytes]).to be < 2 << 20
    expect(collector.stats[:stack_overflows]).to be > 0
    # Samples that wait to be swept may have been thinned: over seeds the standard deviation was about 1,100.
    expect(Pprof.decode(collector.flush).by_class(:allocations)["Object"]).to be_within(6 * 1100).of(40_000)
  end

  it "stays within max_stack_bytes with stacks that are read later" do
    collector = new_collector(sample_rate: 1.0, max_stack_bytes: 1 << 20, bt_method: :backtrace_locations).start
    # Nothing dies: how often garbage is collected must not decide how often samples are thinned.
    GC.disable
    run_generated_methods(20_000)
    expect(collector.stats[:stack_bytes]).to be < 2 << 20
    # What is left at 1/128 fits; where jobs are kept, their stacks are kept as well, and it takes at least 13.
    expect(collector.stats[:halvings]).to be_between(6, 8)
  ensure
    GC.enable
  end

  describe "with labels without end" do
    let!(:collector) { new_collector(sample_rate: 1.0, max_stack_bytes: 1 << 20).start }
    let!(:kept) { allocate(1000) }

    before do
      # A thread's stack has few frames.
      Thread.new do
        5000.times do |number|
          MemprofilerPprof.with_labels(number: number) { Object.new }
          GC.start if (number % 100).zero?
        end
      end.join
    end

    it "keeps the live samples" do
      expect(collector.stats[:halvings]).to eq(0)
      expect(Pprof.decode(collector.flush(gc: true)).by_class(:retained_objects)["Object"]).to be >= kept.size
    end

    it "says which labels it has not kept" do
      profile = collector.flush.profile.tag(class: "Object")
      expect(profile.tag(labels: "(not kept)").total(:allocations).value).to be_between(1000, 5000)
      expect(profile.total(:allocations).value).to eq(6000)
      expect(collector.stats).to include(label_overflows: be_positive)
    end
  end

  # In a separate process: the remains of this one's stack could hold them.
  it "releases the instruction sequences it has named" do
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

  it "reports its memory to ObjectSpace" do
    collector = new_collector(sample_rate: 1.0).start
    kept = allocate(10_000)
    expect(ObjectSpace.memsize_of(collector)).to be > collector.stats[:live_set_bytes]
    expect(collector.stats[:live_set_bytes]).to be_between(24 * kept.size, 60 * kept.size)
  end

  describe "without a flush" do
    # What `body` prints at the end, in a separate process: in this one, others might hold the code.
    def printed(options, setup, body)
      outcome = run_ruby(<<~RUBY)
        require "objspace"
        collector = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000, #{options}).start
        kept = []
        #{setup}
        #{body}
      RUBY
      expect(outcome).to be_success, outcome.to_s
      outcome.stdout.split.map { |word| Integer(word) }
    end

    let(:evals) { "20_000.times { |n| object = eval('Object.new'); kept << object if (n % 3).zero? }" }

    it "releases code that is gone" do
      held, pinned, functions, namings = printed("", evals, <<~RUBY)
        GC.start
        puts ObjectSpace.count_imemo_objects[:imemo_iseq], *collector.stats.values_at(:pinned_functions, :functions, :namings)
      RUBY
      # Naming starts at 4,096 and takes a while.
      expect([held, pinned, functions, namings]).to match([be < 12_000, be < 5000, be < 5000, be >= 4])
    end

    it "releases anonymous classes, and adds up their objects" do
      classes, pinned, entries = printed("", <<~RUBY, <<~PRINTED)
        20_000.times { |n| object = Class.new.new; kept << object if (n % 3).zero? }
        kept.clear
      RUBY
        GC.start
        puts ObjectSpace.each_object(Class).count, *collector.stats.values_at(:pinned_classes, :unreported_entries)
      PRINTED
      expect([classes, pinned, entries]).to all(be < 6000)
    end

    %i[cfp profile_frames backtrace_locations].each do |method|
      it "counts as with flushes, with bt_method: :#{method}" do
        namings, retained, allocated = printed("bt_method: :#{method}", evals, <<~RUBY)
          puts collector.stats[:namings]
          profile = collector.stop.flush(gc: true).profile.tag(class: "Object")
          puts profile.total(:retained_objects).value, profile.total(:allocations).value
        RUBY
        expect([namings, retained, allocated]).to match([be_positive, 6667, 20_000])
      end
    end

    it "names the same functions and lines" do
      report = lambda do |evals|
        outcome = run_ruby(<<~RUBY)
          collector = new_collector(sample_rate: 1.0).start
          Marker = Class.new
          def marked = Marker.new
          kept = Array.new(10) { marked }
          10.times { marked }
          #{evals}.times { eval("nil.to_a") }
          abort "\#{collector.stats[:namings]} times" unless collector.stats[:namings].positive? == #{evals.positive?}
          profile = collector.stop.flush.profile.tag(class: "Marker")
          puts profile.samples.map { |sample| sample.stack.map(&:to_a).inspect }.sort.uniq
        RUBY
        expect(outcome).to be_success, outcome.to_s
        outcome.stdout
      end
      expect(report.call(10_000)).to eq(report.call(0)).and(match(/marked.*, 4\D/))
    end

    it "leaves Threads to the flush" do
      outcome = run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0, thread_names: true).start
        kept = []
        thread = Thread.new do
          Thread.current.name = "early"
          10_000.times { kept << eval("nil.to_a") }
        end
        thread.join.name = "late"
        namings = collector.stats[:namings]
        puts namings.positive?, collector.stop.flush.profile.samples.filter_map { |sample| sample.labels["thread"] }.uniq.sort
      RUBY
      expect(outcome).to be_success, outcome.to_s
      expect(outcome.stdout.split).to eq(%w[true late main])
    end

    it "has keepers mark what is new since the start, so that a minor collection need not scan all of it" do
      setup = 'kept << Array.new(2000) { |n| eval("def self.m#{n} = Object.new; m#{n}") }' # rubocop:disable Lint/InterpolationCheck
      direct, all = printed("", setup, <<~RUBY)
        puts ObjectSpace.reachable_objects_from(collector).size, collector.mark_table_size
      RUBY
      expect([direct, all]).to match([be < 1000, be > 4000])
    end

    it "drops the classes of dead objects if there are too many, and says so" do
      outcome = run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        classes = Array.new(300) { |n| Object.const_set("Marker\#{n}", Class.new) }
        makers = Array.new(300) { |n| eval("->(made) { made.new }", nil, __FILE__, 1000 + n) }
        makers.each { |maker| classes.each(&maker) }
        GC.start
        entries, overflows = collector.stats.values_at(:unreported_entries, :class_overflows)
        profile = collector.flush.profile
        named = profile.tag(class: /Marker|class not kept/).total(:allocations).value
        puts entries, overflows, named, profile.comments.grep(/class_overflows/)
      RUBY
      expect(outcome).to be_success, outcome.to_s
      entries, overflows, named, comment = outcome.stdout.split
      expect([entries.to_i, overflows.to_i, named.to_i, comment])
        .to match([be < 70_000, 1, be_between(90_000, 96_000), "class_overflows=1"])
    end

    it "adds up dead objects of different sizes before it drops classes" do
      outcome = run_ruby(<<~'RUBY')
        collector = new_collector(sample_rate: 0.9).start
        makers = eval("[#{"->(size) { 'x' * size },\n" * 10_000}]")
        makers.each { |maker| 8.times { |power| maker.call(50 << power) } }
        GC.start
        puts collector.stats.values_at(:unreported_entries, :class_overflows)
        puts collector.flush.profile.tag(class: "String").total(:allocations).value
      RUBY
      # 72,000 of 80,000 strings are sampled, each of a line and size of its own.
      expect(outcome.stdout.split.map(&:to_i)).to match([be < 50_000, 0, be > 79_000]), outcome.to_s
    end

    it "remembers a bounded number of frames of other threads" do
      bytes, nodes = printed("max_frames: 5000", <<~RUBY, "puts *collector.stats.values_at(:stack_bytes, :stack_nodes)")
        there, on = Queue.new, Queue.new
        def deep(depth, &) = depth.zero? ? yield : deep(depth - 1, &)
        GC.disable
        20.times { Thread.new { deep(4000) { there << Object.new && on.pop } } && there.pop }
      RUBY
      # Those of all threads would take 2 MB.
      expect([bytes, nodes]).to match([be < 1_800_000, be_between(4000, 9000)])
    end
  end
end
