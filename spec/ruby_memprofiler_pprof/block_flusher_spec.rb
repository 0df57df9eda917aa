# frozen_string_literal: true

require "timeout"

RSpec.describe MemprofilerPprof::BlockFlusher, :moving, :threads do
  let(:collector) { FakeCollector.new }
  let(:logger) { FakeLogger.new }
  let(:profiles) { Queue.new }
  let(:flushers) { [] }

  after { flushers.each(&:stop!) }

  def new_flusher(interval: 0.01, on_flush: profiles.method(:push), **options)
    described_class.new(collector, interval: interval, logger: logger, on_flush: on_flush, **options)
                   .tap { |flusher| flushers << flusher }
  end

  def flushed_times(number)
    wait_until(what: "#{number} flushes") { collector.flushes.size >= number }
  end

  # @return [ManualClock] the clock of the example's flushers
  def use_manual_clock
    ManualClock.new.tap do |clock|
      allow(MemprofilerPprof::PeriodicThread).to receive(:new).and_wrap_original do |make, *values, **options, &work|
        make.call(*values, clock: clock, **options, &work)
      end
    end
  end

  # The thread, through the only way to see it.
  def thread_of(flusher)
    flusher.instance_variable_get(:@thread).instance_variable_get(:@thread)
  end

  describe "#start!" do
    it "flushes and delivers profiles, again and again" do
      new_flusher.start!
      expect(Array.new(3) { profiles.pop.pprof_data }).to eq(["profile 1", "profile 2", "profile 3"])
    end

    it "flushes once an interval" do
      clock = use_manual_clock
      new_flusher(interval: 10).start!
      counts = [9, 1, 9, 1].map do |seconds|
        clock.advance(seconds)
        profiles.size
      end
      expect(counts).to eq([0, 1, 1, 2])
    end

    it "flushes in a thread of its own" do
      new_flusher.start!
      flushed_times(1)
      expect(collector.flushes.first[:thread]).not_to eq(Thread.current)
    end

    it "returns the flusher" do
      flusher = new_flusher
      expect(flusher.start!).to be(flusher)
    end

    it "starts no second thread when called twice" do
      flusher = new_flusher.start!
      expect { flusher.start! }.not_to(change { thread_of(flusher) })
    end

    it "is not paused any more after a stop" do
      flusher = new_flusher.start!.pause.stop!
      expect(flusher.start!).not_to be_paused
    end

    it "starts again after the thread was killed" do
      flusher = new_flusher.start!
      thread_of(flusher).kill.join
      flusher.start!
      expect(profiles.pop).to be_a(FakeCollector::Profile)
    end

    it "neither starts nor stops the collector" do
      collector.running = false
      new_flusher.start!
      flushed_times(2)
      expect(collector).not_to be_running
    end

    it "gives the thread its name and priority" do
      flusher = new_flusher(priority: -2).start!
      expect(thread_of(flusher)).to have_attributes(name: "ruby_memprofiler_pprof flusher", priority: -2)
    end

    it "marks the thread for Puma as fork-safe" do
      expect(thread_of(new_flusher.start!).thread_variable_get(:fork_safe)).to be(true)
    end

    it "passes on the options of the flush" do
      options = { yield_gvl: false, gc: true, min_age: 2, max_hold: 0.001, max_duration: 1 }
      new_flusher(**options).start!
      flushed_times(1)
      expect(collector.flushes.first[:options]).to eq(options)
    end
  end

  describe "the block" do
    it "is called with each profile, like on_flush" do
      flusher = described_class.new(collector, interval: 1000, logger: logger) { |profile| profiles << profile }
      flusher.start!.stop!
      expect(profiles.pop(true).pprof_data).to eq("profile 1")
    end

    it "must be given, or on_flush" do
      expect { described_class.new(collector) }
        .to raise_error(ArgumentError, "BlockFlusher.new needs a block, or on_flush")
    end

    it "must not be given beside on_flush" do
      expect { described_class.new(collector, on_flush: proc {}) { nil } }
        .to raise_error(ArgumentError, "on_flush and a block are given, of which only one can be called")
    end
  end

  describe "#stop!" do
    # What flushes wait for, until it is closed.
    let(:gate) { Queue.new }

    it "flushes a last time, in the calling thread" do
      new_flusher(interval: 1000).start!.stop!
      expect(collector.flushes.map { |flush| flush[:thread] }).to eq([Thread.current])
    end

    it "does not wait for the interval" do
      flusher = new_flusher(interval: 1000).start!
      expect { Timeout.timeout(60) { flusher.stop! } }.not_to raise_error
    end

    it "waits for a flush under way" do
      delivered = []
      flusher = new_flusher(interval: 1000, on_flush: lambda { |profile|
        gate.pop
        delivered << profile.pprof_data
      })
      flusher.start!.flush_soon
      flushed_times(1)
      stopping = Thread.new { flusher.stop! }
      wait_until { stopping.stop? }
      expect(collector.flushes.size).to eq(1)
      gate.close
      stopping.join
      expect(delivered).to eq(["profile 1", "profile 2"])
    end

    # In whose last flush a thread is when the process exits.
    def exiting(call)
      run_ruby(<<~RUBY)
        entered, exiting = Queue.new, Queue.new
        deliver = lambda do |_|
          entered << true
          exiting.pop
          # As long as a process that does not wait takes to end.
          sleep 0.3
          puts "delivered"
        end
        flusher = MemprofilerPprof::BlockFlusher.new(new_collector.start, interval: 3600, on_flush: deliver).start!
        at_exit { 2.times { exiting << true } }
        #{call}
        entered.pop
      RUBY
    end

    it "is waited for by a process that exits" do
      expect(exiting("Thread.new { flusher.stop! }").stdout).to eq("delivered\n")
    end

    it "is waited for with the flush that it waits for" do
      outcome = exiting(<<~RUBY)
        flusher.flush_soon
        entered.pop
        stopping = Thread.new { flusher.stop! }
        Thread.pass until stopping.stop?
        entered << true
      RUBY
      expect(outcome.stdout).to eq("delivered\n" * 2), outcome.to_s
    end

    it "leaves no flusher to a child that is forked meanwhile" do
      outcome = run_ruby(<<~RUBY)
        entered = Queue.new
        deliver = ->(_) { (entered << true) && sleep }
        flusher = MemprofilerPprof::BlockFlusher.new(new_collector.start, on_flush: deliver).start!
        Thread.new { flusher.stop! }
        entered.pop
        $stdout.sync = true
        Process.wait(fork { p(flusher.running?, MemprofilerPprof::RunningFlushers.to_a.size) && Process.exit! })
        Process.exit!
      RUBY
      expect(outcome.stdout.split).to eq(%w[false 0]), outcome.to_s
    end

    it "ends the thread" do
      flusher = new_flusher.start!
      thread = thread_of(flusher)
      flusher.stop!
      expect([thread.alive?, flusher.running?]).to eq([false, false])
    end

    it "still flushes a last time if the thread was killed" do
      flusher = new_flusher(interval: 1000).start!
      thread_of(flusher).kill.join
      flusher.stop!
      expect(collector.flushes.size).to eq(1)
    end

    it "still flushes a last time if something was raised in the thread" do
      flusher = new_flusher(interval: 1000).start!
      thread_of(flusher).report_on_exception = false
      thread_of(flusher).raise("from elsewhere")
      wait_until { !flusher.running? }
      flusher.stop!
      expect(collector.flushes.size).to eq(1)
    end

    it "does nothing when it does not run" do
      new_flusher.stop!
      expect(collector.flushes).to be_empty
    end

    it "can be called from the block" do
      flusher = new_flusher(interval: 1000, on_flush: lambda { |profile|
        flusher.stop!
        profiles << profile
      })
      thread = thread_of(flusher.start!)
      flusher.flush_soon
      thread.join
      expect([collector.flushes.size, profiles.size]).to eq([1, 1])
    end

    it "leaves the caller's timeout alone" do
      flusher = new_flusher(on_flush: ->(_) { gate.pop }).start!
      flushed_times(1)
      expect { Timeout.timeout(0.05, ArgumentError) { flusher.stop! } }.to raise_error(ArgumentError)
    ensure
      gate.close
    end
  end

  describe "#run" do
    it "returns the block's value" do
      expect(new_flusher.run { 42 }).to eq(42)
    end

    it "runs during the block" do
      flusher = new_flusher
      expect(flusher.run { flusher.running? }).to be(true)
    end

    it "stops when the block raises" do
      flusher = new_flusher
      expect { flusher.run { raise IOError } }.to raise_error(IOError)
      expect(flusher).not_to be_running
    end
  end

  describe "#pause" do
    it "skips flushes" do
      clock = use_manual_clock
      new_flusher(interval: 10).start!.pause
      3.times { clock.advance(10) }
      expect(collector.flushes).to be_empty
    end

    it "leaves the flusher running" do
      expect(new_flusher.start!.pause).to have_attributes(running?: true, paused?: true)
    end

    it "does not prevent #stop! from flushing" do
      new_flusher(interval: 1000).start!.pause.stop!
      expect(collector.flushes.size).to eq(1)
    end
  end

  describe "#unpause" do
    it "flushes again" do
      flusher = new_flusher.start!.pause.unpause
      profiles.clear
      expect([flusher.paused?, profiles.pop]).to match([false, FakeCollector::Profile])
    end

    it "catches up immediately on what fell due" do
      clock = use_manual_clock
      flusher = new_flusher(interval: 10).start!.pause
      3.times { clock.advance(10) }
      flusher.unpause
      clock.settle
      expect(profiles.size).to eq(1)
    end
  end

  describe "#flush_soon" do
    it "flushes at once, in the flusher's thread" do
      flusher = new_flusher(interval: 1000).start!.flush_soon
      flushed_times(1)
      expect(collector.flushes.first[:thread]).to be(thread_of(flusher))
    end

    it "flushes once" do
      clock = use_manual_clock
      new_flusher(interval: 1000).start!.flush_soon
      2.times { clock.settle }
      expect(collector.flushes.size).to eq(1)
    end

    it "flushes in a pause, too" do
      new_flusher(interval: 1000).start!.pause.flush_soon
      flushed_times(1)
      expect(profiles.pop).to be_a(FakeCollector::Profile)
    end

    it "does nothing if the flusher does not run" do
      clock = use_manual_clock
      new_flusher(interval: 1000).flush_soon.start!
      clock.settle
      expect(collector.flushes).to be_empty
    end
  end

  describe "errors" do
    it "continues after a flush that failed" do
      collector.errors << MemprofilerPprof::Error.new("not now")
      new_flusher.start!
      expect(profiles.pop.pprof_data).to eq("profile 2")
    end

    it "logs a flush that failed" do
      collector.errors << MemprofilerPprof::Error.new("not now")
      new_flusher(interval: 1000).start!.stop!
      expect(logger[:error]).to match([/BlockFlusher: flushing failed: MemprofilerPprof::Error: not now \(.*:\d+/])
    end

    [RuntimeError, NotImplementedError, NoMemoryError, SystemStackError].each do |error|
      it "continues after a block that raised a #{error}" do
        new_flusher(on_flush: ->(_) { raise error, "no" }).start!
        wait_until { logger[:error].size > 1 }
        expect(logger[:error].first).to include("#{error}: no")
      end
    end

    it "continues when the logger fails, too" do
      allow(logger).to receive(:error).and_raise(IOError)
      collector.errors << RuntimeError.new
      new_flusher.start!
      expect(profiles.pop.pprof_data).to eq("profile 2")
    end

    it "writes to stderr if there is no logger" do
      collector.errors << RuntimeError.new("not now")
      expect { described_class.new(collector) { nil }.start!.stop! }
        .to output(/\AERROR ruby_memprofiler_pprof \[.* ##{Process.pid}\] .*not now/).to_stderr
    end
  end

  context "when the collector does not run" do
    it "delivers what it still has" do
      collector.running = false
      new_flusher(interval: 1000).start!.stop!
      expect(profiles.size).to eq(1)
    end

    it "does not deliver empty profiles" do
      idle = FakeCollector.new(running: false, samples: 0)
      described_class.new(idle, on_flush: profiles.method(:push)).start!.stop!
      expect([idle.flushes.size, profiles.size]).to eq([1, 0])
    end
  end

  it "delivers an empty profile of a collector that ran until it was stopped" do
    idle = FakeCollector.new(samples: 0)
    flusher = described_class.new(idle, on_flush: profiles.method(:push)).start!
    idle.running = false
    2.times { flusher.stop!.start! }
    flusher.stop!
    expect([idle.flushes.size, profiles.size]).to eq([3, 1])
  end

  it "delivers an empty profile of a collector that runs" do
    idle = FakeCollector.new(samples: 0)
    described_class.new(idle, on_flush: profiles.method(:push)).start!.stop!
    expect(profiles.size).to eq(1)
  end

  context "with a collector" do
    let(:collector) { new_collector(sample_rate: 1.0) }

    it "delivers what the program allocated since the last flush" do
      collector.start
      flusher = new_flusher(interval: 1000).start!
      kept = Array.new(100) { Object.new }
      flusher.stop!
      expect(Pprof.decode(profiles.pop).by_class["Object"]).to eq(kept.size)
    end

    it "keeps the block's own allocations out of the profiles" do
      collector.start
      new_flusher(on_flush: ->(profile) { profiles << [profile, Array.new(100) { Object.new }] }).run do
        wait_until { profiles.size > 2 }
      end
      found = Array.new(profiles.size) { Pprof.decode(profiles.pop.first).by_class["Object"] }
      expect(found.compact).to be_empty
    end

    it "keeps the last flush's own allocations out of the profiles" do
      collector.start
      flusher = new_flusher(interval: 1000, on_flush: ->(_) { profiles << Array.new(100) { Object.new } })
      2.times { flusher.start!.stop! }
      expect([profiles.size, Pprof.decode(collector.flush).by_class["Object"]]).to eq([2, nil])
    end

    it "delivers allocations of a collector that has stopped, though nothing of them is alive" do
      # Not on this machine stack, where remains would keep some alive; once before, to fill the VM's caches.
      session = lambda do
        Thread.new { [collector.start, Array.new(100) { Object.new }, collector.stop] && nil }.join
        GC.start
      end
      2.times { [session.call, collector.flush] }
      flusher = new_flusher(interval: 1000).start!
      session.call
      flusher.stop!
      expect(Pprof.decode(profiles.pop(true)).by_class(:allocations)["Object"]).to eq(100)
    end

    it "delivers what was collected before the collector stopped" do
      collector.start
      flusher = new_flusher(interval: 1000).start!
      kept = Array.new(10) { Object.new }
      collector.stop
      flusher.stop!
      expect(Pprof.decode(profiles.pop).by_class["Object"]).to eq(kept.size)
    end

    it "logs that the collector was never started" do
      new_flusher(interval: 1000).start!.stop!
      expect(logger[:error]).to match([/start/])
    end

    it "shares it with another flusher" do
      collector.start
      kept = Array.new(10) { Object.new }
      2.times { new_flusher(interval: 1000).start! }
      flushers.each(&:stop!)
      found = Array.new(2) { Pprof.decode(profiles.pop).by_class["Object"] }
      expect(found).to eq([kept.size] * 2)
    end
  end

  describe ".new" do
    [0, -1, Float::NAN, Float::INFINITY].each do |interval|
      it "refuses an interval of #{interval}" do
        expect { new_flusher(interval: interval) }
          .to raise_error(ArgumentError, "interval must be a finite number of seconds above 0, got #{interval}")
      end
    end

    {
      interval: ["30", "a number of seconds"],
      on_flush: [3, "nil or something to call"],
      priority: ["low", "nil or an Integer"]
    }.each do |name, (value, allowed)|
      it "refuses #{name}: #{value.inspect}" do
        expect { new_flusher(name => value) }
          .to raise_error(TypeError, "#{name} must be #{allowed}, got #{value.inspect}")
      end
    end

    {
      { yield_gvl: 1 } => [TypeError, "yield_gvl must be true or false, got 1"],
      { gc: nil } => [TypeError, "gc must be true or false, got nil"],
      { min_age: -1 } => [ArgumentError, "min_age must be an Integer in 0..4294967295, got -1"],
      { max_hold: 0 } => [ArgumentError, "max_hold must be a number of seconds above 0, at most 86400, got 0"],
      { max_duration: "1" } =>
        [TypeError, "max_duration must be a number of seconds above 0, at most 86400, got \"1\""],
      { speed: 1 } => [ArgumentError, /\Akeyword must be one of yield_gvl, .*, got :speed\z/]
    }.each do |option, (error, message)|
      it "refuses #{option}" do
        expect { new_flusher(**option) }.to raise_error(error, message)
      end
    end

    it "refuses an object that cannot be flushed" do
      expect { described_class.new(nil) }
        .to raise_error(TypeError, "collector must be a MemprofilerPprof::Collector, got nil")
    end
  end
end
