# frozen_string_literal: true

require "tmpdir"

RSpec.describe MemprofilerPprof::Collector, "track_peak", :moving do
  # What the examples' programs begin with. Only what is asked for is in their output.
  preamble = <<~RUBY
    def first(mebibytes) = Array.new(mebibytes) { "x" * (1 << 20) }
    def second(mebibytes) = Array.new(mebibytes) { "y" * (1 << 20) }

    # A single garbage collection sees what the block returned, which is garbage then.
    def alive
      GC.disable
      kept = yield
      GC.enable
      GC.start
      kept.clear
    end

    # Mebibytes by method.
    def peak(collector)
      profile = collector.peak_profile&.profile or return
      %w[first second].to_h { |name| [name, profile.focus(/#\#{name}\\z/).total("retained_size").value >> 20] }
    end

    collector = new_collector(sample_rate: 1.0, sampling: :always, track_peak: true).start
  RUBY

  # What the program printed.
  define_method(:output_of) do |program|
    outcome = run_ruby(preamble + program)
    expect(outcome).to be_success, outcome.to_s
    outcome.stdout.lines(chomp: true)
  end

  before { skip "needs /proc" unless File.exist?("/proc/self/status") }

  it "keeps what was alive when the process had the most memory" do
    expect(output_of(<<~RUBY)).to eq(['{"first"=>64, "second"=>0}', "0"])
      alive { first(64) }
      3.times { GC.start }
      puts peak(collector).inspect.gsub(" => ", "=>")
      puts collector.flush.profile.focus(/#first/).tag(class: "String").total("retained_size").value
    RUBY
  end

  it "replaces it by what is greater, and not by what is less" do
    expect(output_of(<<~RUBY)).to eq(['{"first"=>64, "second"=>0}', '{"first"=>0, "second"=>160}'])
      alive { first(64) }
      alive { second(8) }
      puts peak(collector).inspect.gsub(" => ", "=>")
      alive { second(160) }
      puts peak(collector).inspect.gsub(" => ", "=>")
    RUBY
  end

  it "keeps it, by name, when flushes come between, and returns it as often as asked" do
    expect(output_of(<<~RUBY)).to eq(['{"first"=>64, "second"=>0}'] * 2)
      alive { first(64) }
      2.times { collector.flush }
      2.times { puts peak(collector).inspect.gsub(" => ", "=>") }
    RUBY
  end

  it "ends no interval" do
    expect(output_of(<<~RUBY)).to eq(%w[0.0 6])
      alive { first(64) }
      collector.flush
      second(3)
      puts collector.peak_profile.profile.duration
      puts collector.flush.profile.focus(/#second/).tag(class: "String").total("allocations").value
    RUBY
  end

  it "says when that was, and how many bytes were resident" do
    expect(output_of(<<~RUBY)).to eq(%w[true true true true true])
      began = Time.now
      alive { first(64) }
      ended = Time.now
      profile = collector.peak_profile.profile
      puts profile.time.between?(began, ended)
      bytes = profile.comments.filter_map { |comment| comment[/\\Atracked_peak_rss_bytes=(\\d+)/, 1]&.to_i }
      puts bytes == [collector.stats[:tracked_peak_rss_bytes]]
      puts bytes.first.between?(64 << 20, collector.stats[:peak_rss_bytes])
      # What is now says nothing of then.
      puts profile.comments.grep(/\\A(?:memory|heap_live_slots|minor_gc_count)=/).empty?
      puts profile.comments.include?("rss_bytes=\#{bytes.first}")
    RUBY
  end

  it "says how many objects a sample stood for then" do
    expect(output_of(<<~RUBY)).to eq(["greatest_weight=2"])
      collector.sample_rate = 0.5
      alive { first(64) }
      collector.sample_rate = 0.1
      puts collector.peak_profile.profile.comments.grep(/greatest_weight=/)
    RUBY
  end

  it "is a setting, with which the peak is in a file of its own when the process ends" do
    Dir.mktmpdir do |directory|
      run_ruby(preamble + <<~RUBY, env: { "RUBY_MEMPROFILER_PPROF_TRACK_PEAK" => "on" }, args: [directory])
        MemprofilerPprof.start(sample_rate: 1.0, pattern: File.join(ARGV[0], "%{index}.pprof"))
        alive { first(64) }
      RUBY
      expect(Dir.children(directory).sort).to eq(%w[0.peak.pprof 0.pprof])
      peak = MemprofilerPprof::Profile.load(File.join(directory, "0.peak.pprof"))
      expect(peak.focus(/#first/).total("retained_size").value).to be >= 64 << 20
    end
  end

  it "knows nothing unless asked, or no longer" do
    expect(output_of(<<~RUBY)).to eq(%w[nil nil nil])
      collector.track_peak = false
      alive { first(64) }
      p collector.peak_profile, collector.stats[:tracked_peak_rss_bytes]
      collector.track_peak = true
      alive { second(64) }
      collector.track_peak = false
      p collector.peak_profile
    RUBY
  end

  it "is not known without mark bits" do
    expect(output_of(<<~RUBY)).to eq(%w[nil])
      other = MemprofilerPprof::Collector.new(sample_rate: 1.0, liveness: :freeobj, track_peak: true).start
      alive { first(64) }
      p other.peak_profile
    RUBY
  end

  it "begins again in a forked child" do
    expect(output_of(<<~RUBY)).to eq(['{"first"=>0, "second"=>64}', '{"first"=>64, "second"=>0}'])
      alive { first(64) }
      GC.start
      Process.wait(fork { alive { second(64) }; puts peak(collector).inspect.gsub(" => ", "=>") })
      puts peak(collector).inspect.gsub(" => ", "=>")
    RUBY
  end

  it "keeps no code alive once it is known by name" do
    expect(output_of(<<~RUBY)).to eq(%w[true true])
      eval("def third = Array.new(64) { 'z' * (1 << 20) }", nil, "eval.rb")
      alive { third }
      collector.flush
      puts collector.peak_profile.profile.top(by: :file).any? { |site| site.name == "eval.rb" }
      collector.flush
      puts collector.stats[:pinned_functions] < 50
    RUBY
  end

  it "keeps no Thread alive once it is known by name, even if its stack was lost" do
    expect(output_of(<<~RUBY)).to eq(%w[true true])
      # Otherwise stacks get names with the classes.
      collector.object_class = false
      collector.thread_names = true
      collector.max_stack_bytes = 1 << 20
      threads = ObjectSpace::WeakMap.new
      def in_threads(threads)
        Array.new(50) { |n| Thread.new { Thread.current.name = "t\#{n}"; first(1) }.tap { |it| threads[it] = n }.value }
      end
      alive { in_threads(threads) }
      def deeper(depth) = depth.zero? ? Object.new : deeper(depth - 1)
      60.times { |number| eval("def deeper_\#{number}(depth) = depth.zero? ? Object.new : deeper_\#{number}(depth - 1)") }
      60.times { |number| 300.times { |depth| __send__(:"deeper_\#{number}", depth) } }
      2.times { collector.flush(gc: true) }
      GC.start
      puts collector.stats[:stack_overflows].positive?, threads.size < 25
    RUBY
  end

  it "survives that stacks are lost for lack of room" do
    expect(output_of(<<~RUBY)).to eq(%w[64 true])
      collector.max_stack_bytes = 1 << 20
      alive { first(64) }
      def deeper(depth) = depth.zero? ? Object.new : deeper(depth - 1)
      60.times { |number| eval("def deeper_\#{number}(depth) = depth.zero? ? Object.new : deeper_\#{number}(depth - 1)") }
      60.times { |number| 300.times { |depth| __send__(:"deeper_\#{number}", depth) } }
      puts collector.peak_profile.profile.tag(class: "String").total("retained_size").value >> 20
      puts collector.stats[:stack_overflows].positive?
    RUBY
  end
end
