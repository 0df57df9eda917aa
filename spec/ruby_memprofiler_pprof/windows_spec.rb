# frozen_string_literal: true

require "objspace"

# Sampling in windows, from Ruby 3.3 on.
RSpec.describe MemprofilerPprof::Collector, "in windows", skip: ("windows need Ruby 3.3" if RUBY_VERSION < "3.3") do
  let(:kept) { [] }

  def windows_collector(**options)
    new_collector(sampling: :windows, window_frame: 0.002, window_duty: 0.25, max_sampling_time: 1.0,
                  max_heap_samples: 1_000_000, **options)
  end

  # Allocates until the collector has opened that many more windows.
  def allocate_for(collector, windows)
    last = collector.stats[:windows] + windows
    100.times { kept << Object.new } until collector.stats[:windows] >= last
  end

  # The states of the timer's threads.
  def timers
    Dir["/proc/self/task/*/status"].map { |path| File.read(path) }.grep(/^Name:\tmemprofiler-win$/)
  end

  # As another tool does it: has a hook on allocations until the example's end.
  def trace_allocations
    ObjectSpace.trace_object_allocations_start
    @tracing = true
  end

  after do
    if @tracing
      ObjectSpace.trace_object_allocations_stop
      ObjectSpace.trace_object_allocations_clear
    end
  end

  it "opens windows while Ruby code runs" do
    collector = windows_collector.start
    allocate_for(collector, 20)
    expect(collector.stats).to include(sampling: :windows, windows: be >= 20, window_coverage: be_between(0.01, 0.99))
  end

  it "sees no allocations between windows" do
    # Within windows each allocation is a sample.
    collector = windows_collector(sample_rate: 0.05, window_duty: 0.05).start
    before = GC.stat(:total_allocated_objects)
    allocate_for(collector, 30)
    expect(collector.stats[:samples]).to be_between(1, 0.8 * (GC.stat(:total_allocated_objects) - before))
  end

  it "takes fewer samples where they take more time than they may" do
    rates = [0.0001, 1.0].map do |max_sampling_time|
      collector = windows_collector(sample_rate: 0.2, max_sampling_time: max_sampling_time).start
      allocate_for(collector, 50)
      collector.stats[:effective_sample_rate].tap { collector.stop }
    end
    expect(rates).to match([be_between(1e-9, 0.1), 0.2])
  end

  it "remembers what they take when it is stopped, until a flush" do
    collector = windows_collector(sample_rate: 0.2, max_sampling_time: 0.0001).start
    allocate_for(collector, 50)
    rates = [-> {}, -> { collector.flush }].map do |between|
      collector.stop
      between.call
      collector.start.stats[:effective_sample_rate]
    end
    expect(rates).to match([be_between(1e-9, 0.1), 0.2])
  end

  it "says in a profile which rate that leaves" do
    collector = windows_collector(sample_rate: 0.2, max_sampling_time: 0.0001).start
    allocate_for(collector, 50)
    collector.stop
    rate = Pprof.decode(collector.flush).comments.filter_map { |comment| comment[/\Asample_rate=(.*)/, 1] }
    expect(rate.map(&:to_f)).to match([be_between(1e-9, 0.1)])
  end

  # Beside busy processes windows vary more.
  describe "in a program that allocates much and little in turn", :slow, :timing do
    # Some milliseconds of each, again and again; how many objects that were.
    def work_for(collector, windows)
      last = collector.stats[:windows] + windows
      random = Random.new(1)
      counts = Array.new(2) { 0 }
      until collector.stats[:windows] >= last
        many = random.rand(20..2000) * 100
        few = random.rand(20..2000)
        many.times { Often.new }
        few.times { 300.times { |number| number } && Seldom.new }
        counts = counts.zip([many, few]).map(&:sum)
      end
      counts
    end

    it "sees as much of either" do
      %w[Often Seldom].each { |name| stub_const(name, Class.new) }
      collector = windows_collector(window_frame: 0.03, window_duty: 0.03, sample_rate: 0.02).start
      # It learns first what its hook costs.
      work_for(collector, 150)
      collector.flush
      truth = work_for(collector, 400)
      found = Pprof.decode(collector.flush).by_class(:allocations).values_at("Often", "Seldom")
      # Four standard deviations: some 200 windows are in each kind of work.
      expect(found.zip(truth).map { |sum, count| sum.fdiv(count) }).to all(be_within(0.3).of(1))
    end
  end

  # The timer waits meanwhile, and may notice late that the program goes on.
  it "knows how much windows cover of a program that waits each millisecond", :slow, :timing do
    collector = windows_collector(window_frame: 0.01, window_duty: 0.1).start
    last = collector.stats[:windows] + 300
    until collector.stats[:windows] >= last
      goes_on = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.001
      100.times { Object.new } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < goes_on
      sleep(0.001)
    end
    expect(collector.stats[:window_coverage]).to be_between(0.075, 0.125)
  end

  it "counts windows whose end has waited for a safe point" do
    trace_allocations
    collector = windows_collector.start
    text = "x" * 20_000_000
    500.times do
      allocate_for(collector, 1)
      # Some 5 ms of C code; a window is half a millisecond long.
      text.count("y")
      break if collector.stats[:late_windows].positive?
    end
    expect(collector.stats[:late_windows]).to be_positive
  end

  it "does not count windows as late that end while the program sleeps" do
    outcome = run_ruby(<<~RUBY)
      collector = new_collector(sampling: :windows, window_frame: 0.002, window_duty: 0.25).start
      GC.disable
      100.times do
        last = collector.stats[:windows]
        Object.new until collector.stats[:windows] > last
        sleep 0.005
      end
      print collector.stats[:late_windows]
    RUBY
    # Almost all of these windows are open when it falls asleep.
    expect(outcome.stdout.to_i).to be < 50, outcome.to_s
  end

  it "says the same of the largest weight in the profile of the peak as in others" do
    collector = windows_collector(sample_rate: 0.2, track_peak: true).start
    allocate_for(collector, 20)
    GC.start
    profiles = [collector.peak_profile, collector.peek]
    expect(profiles.map { |each| each.profile.comments.grep(/\Agreatest_weight=/) }).to eq([["greatest_weight=5"]] * 2)
  end

  it "says in the profile in which group of windows samples were taken" do
    collector = windows_collector(sample_rate: 0.2).start
    allocate_for(collector, 20)
    labels = Pprof.decode(collector.flush).samples.flat_map { |sample| sample.labels.keys }
    expect(labels).to include("allocations_windows", "retained_objects_windows")
  end

  it "forgets objects that die between windows" do
    collector = windows_collector(sample_rate: 0.2).start
    allocate_for(collector, 20)
    kept.clear
    profile = Pprof.decode(collector.flush(gc: true))
    retained, allocated = %i[retained_objects allocations].map { |type| profile.by_class(type).fetch("Object", 0) }
    expect(retained).to be < allocated / 10
  end

  it "keeps what it has found when windows end" do
    collector = windows_collector(sample_rate: 0.2).start
    allocate_for(collector, 20)
    collector.sampling = :always
    expect([collector.stats[:sampling], collector.stats[:live_samples]]).to match([:always, be > 100])
  end

  describe "from Ruby 3.4 on", skip: ("windows need safe points before Ruby 3.4" if RUBY_VERSION < "3.4") do
    # What the collector says once so many windows have opened.
    def toggle_after(collector, windows = 3)
      allocate_for(collector, windows)
      collector.stats[:window_toggle]
    end

    # A flush changes it, but not while a window is open.
    def flush_until_toggled_by_the_timer(collector)
      20.times { collector.flush unless collector.stats[:window_toggle] == :timer }
    end

    it "opens windows without safe points" do
      expect(toggle_after(windows_collector.start)).to eq(:timer)
    end

    it "opens windows at safe points while another tool has a hook on allocations" do
      trace_allocations
      expect(toggle_after(windows_collector.start)).to eq(:safe_point)
    end

    it "leaves the hook of another tool on that comes later" do
      collector = windows_collector.start
      allocate_for(collector, 3)
      trace_allocations
      kept.clear
      toggle = toggle_after(collector, 20)
      expect([toggle, kept.count { |object| !ObjectSpace.allocation_sourcefile(object) }]).to eq([:safe_point, 0])
    end

    it "needs no safe points any more once the other tool's hook is gone" do
      trace_allocations
      collector = windows_collector.start
      allocate_for(collector, 3)
      ObjectSpace.trace_object_allocations_stop
      flush_until_toggled_by_the_timer(collector)
      expect(toggle_after(collector)).to eq(:timer)
    end

    it "needs no safe points after hooks on other events have come and gone" do
      collector = windows_collector.start
      5.times { TracePoint.new(:line) { nil }.enable { allocate_for(collector, 2) } }
      # On Ruby 3.4 a job that runs in such a hook cannot tell whose hooks are on.
      flush_until_toggled_by_the_timer(collector)
      expect(toggle_after(collector)).to eq(:timer)
    end

    it "sees no more between windows after hooks on other events have come and gone" do
      collector = windows_collector(sample_rate: 0.05, window_duty: 0.05).start
      before = GC.stat(:total_allocated_objects)
      30.times do
        TracePoint.new(:raise) { nil }.enable { nil }
        allocate_for(collector, 1)
      end
      expect(collector.stats[:samples]).to be_between(1, 0.8 * (GC.stat(:total_allocated_objects) - before))
    end
  end

  it "uses windows again after a stop" do
    collector = windows_collector.start
    allocate_for(collector, 3)
    collector.stop
    collector.start
    allocate_for(collector, 3)
    expect(collector.stats[:sampling]).to eq(:windows)
  end

  it "follows new settings" do
    collector = windows_collector.start
    allocate_for(collector, 3)
    collector.window_frame = 0.005
    allocate_for(collector, 3)
    expect(collector.stats).to include(sampling: :windows, windows: be >= 6)
  end

  it "lets only one collector at a time use windows" do
    windows_collector.start
    expect(windows_collector.start.stats)
      .to include(sampling: :always, sampling_reason: "another collector uses windows")
  end

  it "uses them once no other collector does", :slow do
    first, second = Array.new(2) { windows_collector.start }
    first.stop
    wait_until { GC.start || second.stats[:sampling] == :windows }
    expect(second.stats[:sampling_reason]).to eq("sampling is :windows")
  end

  it "opens windows in forked children" do
    outcome = run_ruby(<<~RUBY)
      collector = new_collector(sampling: :windows).start
      Object.new until collector.stats[:windows] > 2
      child = fork do
        Object.new until collector.stats[:windows] > 2
        grandchild = fork { Object.new until collector.stats[:windows] > 2 }
        exit Process.wait2(grandchild).last.success?
      end
      print Process.wait2(child).last.success?, collector.flush.allocation_samples_count.positive?
    RUBY
    expect(outcome.stdout).to eq("truetrue"), outcome.to_s
  end

  it "learns anew in forked children how much windows cover" do
    outcome = run_ruby(<<~RUBY)
      collector = new_collector(sampling: :windows, window_frame: 0.002, window_duty: 0.25).start
      # The hook takes longer than the child lives.
      1_000.times { Object.new } until collector.stats[:windows] >= 1_000
      child = fork do
        shares = [20, 40].map do |windows|
          Object.new until collector.stats[:windows] >= windows
          collector.stats[:window_coverage]
        end
        print shares.uniq.size
      end
      Process.wait(child)
    RUBY
    expect(outcome.stdout).to eq("2"), outcome.to_s
  end

  it "opens windows in threads while the main thread sleeps" do
    collector = windows_collector.start
    Thread.new { allocate_for(collector, 5) }.join
    expect(collector.stats[:windows]).to be >= 5
  end

  it "is not woken while no Ruby code runs" do
    skip "only Linux counts wake-ups" unless File.directory?("/proc/self/task")
    collector = windows_collector.start
    allocate_for(collector, 3)
    wakes = -> { timers.sum { |status| status[/^voluntary_ctxt_switches:\t(\d+)/, 1].to_i } }
    before = wakes.call
    sleep 0.3
    # 300 windows would have opened and closed; reading the files wakes it, too.
    expect(wakes.call - before).to be < 30
  end

  # Windows are about to open there, too, and on 3.4 a jump out of the hook would never end.
  it "ends a window near the end of the machine stack" do
    outcome = run_ruby(<<~'RUBY')
      DEEP = "\x04\b" + "[\x06" * 100_000 + "0"
      # No Ruby survives if the stack ends while the heap is collected or grows: so grow it before.
      Array.new(500_000) { Object.new }
      collector = new_collector(sampling: :windows, window_frame: 0.001, window_duty: 0.5).start
      def overflow
        GC.start
        GC.disable
        Marshal.load(DEEP)
      rescue SystemStackError
        GC.enable
      end
      10.times { overflow }
      overflow until collector.stats[:stack_ends].positive?
      last = collector.stats[:windows]
      Object.new until collector.stats[:windows] > last
      collector.flush
      print collector.stats[:sampling]
    RUBY
    expect(outcome.stdout).to eq("windows"), outcome.to_s
  end

  it "ends with the process, whatever that does last" do
    code = <<~RUBY
      collector = new_collector(sampling: :windows, window_frame: 0.002, window_duty: 0.25).start
      at_exit { 10_000.times { Object.new } }
      Object.new until collector.stats[:windows] > 20
      at_exit { 10_000.times { Object.new } && print(collector.stats[:sampling]) }
      ObjectSpace.define_finalizer(Object.new, proc { 1000.times { Object.new } })
    RUBY
    expect(run_ruby(code)).to have_attributes(stdout: "windows", success?: true)
  end

  # In Ruby before 3.3.11, 3.4.11 and 4.0.5 nobody can add a hook on thread events any more.
  it "can begin in a child that was forked while another thread was in a hook on thread events" do
    skip CompiledExtension.missing if CompiledExtension.missing
    code = <<~RUBY
      require #{CompiledExtension.new("slow_hook").library.delete_suffix(".so").dump}
      collector = MemprofilerPprof::Collector.new(window_frame: 0.002, window_duty: 0.25).start
      Thread.new { loop { sleep 0.001 } }
      SlowHook.enter
      child = fork do
        collector.sampling = :windows
        Object.new until collector.stats[:windows] > 2
        print collector.stats[:sampling]
      end
      Process.wait(child)
    RUBY
    expect(run_ruby(code).stdout).to eq("windows")
  end
end
