# frozen_string_literal: true

require "timeout"

RSpec.describe MemprofilerPprof::Collector, "#flush", :liveness, :moving, :jit, :threads do
  before { stub_const("Marker", Class.new) }

  let(:collector) { new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start }

  def allocated(*profiles)
    profiles.sum { |profile| allocations(profile, "Marker") }
  end

  def allocations(profile, name)
    Pprof.decode(profile).by_class(:allocations).fetch(name, 0)
  end

  def retained(profile)
    Pprof.decode(profile).by_class(:retained_objects).fetch("Marker", 0)
  end

  # Flushes while `thread` lives, and lets the exceptions that it raises here arrive only during the flushes. If the VM
  # switches threads just as a method returns, its return value is lost: nobody can do anything about that.
  def flush_under_fire(error, thread)
    fire = Struct.new(:profiles, :batches, :aborted, :undelivered).new([], 0, 0, 0)
    Thread.handle_interrupt(error => :never) do
      flush_once_under_fire(error, fire) while thread.alive? || Thread.pending_interrupt?
    end
    fire
  end

  def flush_once_under_fire(error, fire)
    Array.new(2000) { Marker.new }
    fire.batches += 1
    profile = nil
    flushes = collector.stats[:flushes]
    begin
      Thread.handle_interrupt(error => :immediate) { profile = collector.flush }
    rescue error
      fire.aborted += 1 unless profile
    end
    fire.undelivered += 1 if profile.nil? && collector.stats[:flushes] > flushes
    fire.profiles << profile if profile
  end

  def fire(error)
    target = Thread.current
    thread = Thread.new do
      200.times do
        sleep(0.001)
        target.raise(error)
      end
    end
    flush_under_fire(error, thread)
  end

  it "loses no allocations when exceptions end it" do
    collector
    error = Class.new(StandardError)
    outcome = nil
    3.times do
      outcome = fire(error)
      outcome.profiles << collector.flush
      break if outcome.undelivered.zero?
    end
    expect(outcome.aborted).to be > 0
    expect(outcome.undelivered).to eq(0)
    expect(allocated(*outcome.profiles)).to eq(2000 * outcome.batches)
  end

  # Flushes get no further than to a thread's name, and are ended there at the latest.
  def delay_flushes
    asked = Queue.new
    delay = TracePoint.new(:c_call) do |call|
      (asked << true) && sleep if call.self.is_a?(Thread) && call.method_id == :name
    end
    delay.enable
    yield asked
  ensure
    delay.disable
  end

  def collector_of_thread_names
    new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000, thread_names: true).start
  end

  it "continues to count after Timeout has ended a flush" do
    collector = collector_of_thread_names
    kept = Array.new(50_000) { Marker.new }
    delay_flushes do
      20.times { expect { Timeout.timeout(0.0005) { collector.flush } }.to raise_error(Timeout::Error) }
    end
    expect(retained(collector.flush)).to eq(kept.size)
  end

  it "releases its mutex when an exception ends it" do
    collector = collector_of_thread_names
    kept = Array.new(50_000) { Marker.new }
    delay_flushes do |asked|
      thread = Thread.new { collector.flush }
      asked.pop
      thread.kill.join
    end
    expect(retained(collector.flush)).to eq(kept.size)
  end

  # Ruby wakes only the first of those that wait for a Mutex.
  it "wakes the next thread that waits when one is killed as its turn comes" do
    GC.start
    known = ObjectSpace.each_object(Mutex).to_a
    mutex = (collector && (ObjectSpace.each_object(Mutex).to_a - known)).first.tap(&:lock)
    first, second = Array.new(2) { Thread.new { collector.flush }.tap { |thread| Thread.pass until thread.stop? } }
    mutex.unlock
    first.kill
    expect(second.join(30)&.value).to be_a(MemprofilerPprof::ProfileData)
  end

  it "counts each allocation once when two threads flush" do
    collector
    profiles = Queue.new
    threads = Array.new(2) do
      Thread.new do
        20.times { profiles << collector.flush }
      end
    end
    5_000.times { Marker.new }
    threads.each(&:join)
    profiles << collector.flush
    expect(allocated(*Array.new(profiles.size) { profiles.pop })).to eq(5_000)
  end

  it "counts each allocation once while other threads allocate" do
    collector
    threads = Array.new(3) { Thread.new { 10_000.times { Marker.new } } }
    profiles = []
    profiles << collector.flush while threads.any?(&:alive?)
    profiles << collector.flush
    expect(allocated(*profiles)).to eq(30_000)
  end

  it "reports objects that die before it visits them" do
    collector
    kept = Array.new(200_000) { Marker.new }
    begun = Thread::Queue.new
    thread = Thread.new { begun.pop && kept.clear && GC.start }
    begun << true
    expect(allocated(collector.flush)).to eq(200_000)
    thread.join
  end

  it "names classes that existed at the previous flush and are gone" do
    collector
    made = 0
    kept = Array.new(20_000) { Marker.new }
    thread = Thread.new do
      loop do
        short_lived = Class.new(Marker)
        made += Array.new(20_000) { short_lived.new }.size
        break if kept.empty?
      end
    end
    profiles = Array.new(4) do
      GC.start
      collector.flush(max_duration: 0.1)
    end
    kept.clear
    thread.join
    profiles << collector.flush
    named = profiles.sum { |profile| Pprof.decode(profile).by_class(:allocations).fetch("(anonymous Marker)", 0) }
    expect(named).to eq(made)
  end

  it "measures objects whose instance variables are in a table of the VM's" do
    require "objspace"
    collector
    stub_const("Text", Class.new(String))
    kept = Array.new(200) { |i| Text.new("x" * i).tap { |text| text.instance_variable_set(:@note, i) } }
    size = Pprof.decode(collector.flush).by_class(:retained_size).fetch("Text")
    expect(size).to eq(kept.sum { |text| ObjectSpace.memsize_of(text) })
  end

  it "does not count the stack that a Thread reserves" do
    collector
    # It has none before it begins.
    threads = Array.new(5) { Thread.new { sleep }.tap { |thread| Thread.pass until thread.stop? } }
    size = Pprof.decode(collector.flush).by_class(:retained_size).fetch("Thread")
    expect(size).to be_between(5 * 40, 5 * 50_000)
  ensure
    threads.each(&:kill)
  end

  it "lets other threads run between slices" do
    collector
    kept = Array.new(50_000) { Marker.new }
    ticks = 0
    thread = Thread.new { loop { ticks += 1 } }
    Thread.pass until ticks.positive?
    ticks = 0
    data = collector.flush
    thread.kill.join
    expect(data.gvl_proactive_yield_count).to be > 0
    expect(ticks).to be > 0
    expect(retained(data)).to eq(kept.size)
  end

  it "keeps the GVL if configured to" do
    collector
    Array.new(20_000) { Marker.new }
    data = collector.flush(yield_gvl: false, proactively_yield_gvl: false)
    expect([data.gvl_proactive_yield_count, data.sample_add_without_gvl_nsecs]).to eq([0, 0])
  end

  # Freed at its end, they would be freed in one piece, with the GVL held.
  it "leaves names that are no longer needed to the next flush" do
    deep = ->(depth) { depth.zero? ? Marker.new : deep.call(depth - 1) }
    # Fills the VM's caches before anything is sampled.
    deep.call(200)
    collector
    # Not on this machine stack, whose remains the VM may take for references.
    Thread.new { deep.call(200) && nil }.join
    nodes = Array.new(2) { collector.flush(gc: true) && collector.stats[:stack_nodes] }
    expect(nodes.reduce(:-)).to be > 200
  end

  it "gives an empty profile after the flush that follows stop" do
    collector
    kept = Marker.new
    collector.stop
    expect(retained(collector.flush)).to eq(1)
    expect(Pprof.decode(collector.flush).samples).to be_empty
    expect(kept).to be_a(Marker)
  end

  it "tracks deaths after stop" do
    collector
    # Not on this machine stack, whose remains the VM may take for references.
    kept = Thread.new { Array.new(1000) { Marker.new } }.value
    collector.stop
    kept.clear
    GC.start
    profile = collector.flush
    expect(retained(profile)).to be <= 1
    expect(allocated(profile)).to eq(1000)
  end

  it "does not count as retained what returned calls left on the machine stack" do
    outcome = run_ruby(<<~RUBY)
      class Marker; end
      def deep(levels, &work) = levels.zero? ? work.call : [levels - 1].each { |fewer| deep(fewer, &work) }

      profiles = Array.new(40) do |levels|
        collector = new_collector(sample_rate: 1.0).start
        deep(levels) { Array.new(20) { Marker.new }.sort_by(&:object_id) }
        collector.stop
        collector.flush(gc: true).profile
      end
      markers = proc { |type| profiles.count { |it| it.tag(class: "Marker").total(type).value == 20 } }
      print [markers[:allocations], markers[:retained_objects]].inspect
    RUBY
    expect(outcome.stdout).to eq("[40, 0]"), outcome.to_s
  end

  it "continues where it was when started again after stop" do
    collector
    kept = [Marker.new]
    collector.stop
    kept << Marker.new
    collector.start
    kept << Marker.new
    expect(retained(collector.flush)).to eq(2)
  end

  it "keeps a running collector alive" do
    id = MemprofilerPprof::Collector.new(sample_rate: 0.0).start.object_id
    GC.start
    expect(MemprofilerPprof.collectors.map(&:object_id)).to include(id)
  end

  it "cannot be called from a trap handler" do
    outcome = run_ruby(<<~RUBY)
      collector = MemprofilerPprof::Collector.new.start
      handled = false
      trap(:USR1) { handled = true if (collector.flush rescue print $!.class) || true }
      Process.kill(:USR1, Process.pid)
      sleep 0.01 until handled
      collector.flush
    RUBY
    expect(outcome.stdout).to eq("ThreadError")
    expect(outcome).to be_success
  end

  it "counts allocations of signal handlers that run meanwhile" do
    collector
    handled = 0
    previous = trap("USR1") { handled += 1 if Marker.new }
    flushes = lambda do |signals|
      Array.new(50_000) { Marker.new }
      thread = Thread.new { signals.times { Process.kill(:USR1, Process.pid) && sleep(0.001) } }
      profiles = []
      profiles << collector.flush while thread.alive?
      profiles << collector.flush
    end
    expect(allocated(*flushes.call(200)) - handled).to eq(50_000)
  ensure
    trap("USR1", previous)
  end

  # Where it calls a method, the VM may also run signal handlers.
  { "a thread's name" => :name, "an argument's value" => :>= }.each do |what, method|
    it "counts allocations of Ruby code that runs while it asks for #{what}" do
      collector = new_collector(sample_rate: 1.0, thread_names: true).start
      asked = 0
      watch = TracePoint.new(:c_call) { |call| asked += 1 if call.method_id == method && Marker.new }
      profiles = [watch.enable { collector.flush(min_age: 0) }, collector.flush]
      expect([allocated(*profiles), asked]).to match([asked, be > 0])
    end
  end

  it "counts allocations of finalizers when it collects garbage" do
    # A class of its own: objects found on the machine stack are finalized in another example.
    epitaph = stub_const("Epitaph", Class.new)
    finalized = 0
    finalizer = proc { finalized += 1 if epitaph.new }
    collector
    Array.new(100) { ObjectSpace.define_finalizer(Object.new, finalizer) }.clear
    profiles = [collector.flush(gc: true), collector.flush]
    expect(profiles.sum { |profile| allocations(profile, "Epitaph") }).to eq(finalized)
    expect(finalized).to be > 90
  end
end
