# frozen_string_literal: true

require "objspace"

RSpec.describe MemprofilerPprof::Collector, :liveness, :moving, :threads do
  thing = Class.new
  before { stub_const("Thing", thing) }

  # Decoding allocates, too: keep far away from any thinning.
  let!(:collector) { new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start }

  def allocate(count)
    Array.new(count) { Thing.new }
  end

  # What a flush of the collector, or of a reader, reports about Things.
  def things(value, from: collector, **options)
    total(from.flush(**options), value)
  end

  def total(profile, value)
    Pprof.decode(profile).total(value) { |sample| sample.labels["class"] == "Thing" }
  end

  describe "#open_reader" do
    it "begins with the next allocation" do
      kept = allocate(3)
      reader = collector.open_reader
      kept += allocate(4)
      expect(things("allocations", from: reader)).to eq(4)
      expect(kept.size).to eq(7)
    end

    it "reports each allocation once to each reader" do
      readers = [collector, collector.open_reader, collector.open_reader]
      reported = Hash.new(0)
      30.times do |turn|
        kept = allocate(turn)
        allocate(10)
        GC.start if (turn % 7).zero?
        # The third rarely flushes, and gets living and dead at once.
        readers.first(turn % 10 == 9 ? 3 : 1 + (turn % 2)).each do |reader|
          reported[reader] += things("allocations", from: reader)
        end
        expect(kept.size).to eq(turn)
      end
      readers.each { |reader| reported[reader] += things("allocations", from: reader) }
      expect(reported).to eq(readers.to_h { |reader| [reader, 300 + 30.times.sum] })
    end

    it "does not inherit allocations of a reader that was closed in mid-flush and had the same number" do
      reported = Array.new(20) do
        reader = collector.open_reader
        300.times { Thing.new.instance_eval("dup", __FILE__, __LINE__) }
        GC.start
        flush = Thread.new { collector.flush(max_hold: 1e-6) }
        3.times { Thread.pass }
        reader.close
        flush.join
        reader = collector.open_reader
        things("allocations", from: reader).tap { reader.close }
      end
      expect(reported).to all(eq(0))
    end

    it "reports everything retained to all readers" do
      kept = allocate(5)
      reader = collector.open_reader
      expect(things("retained_objects", from: reader, gc: true)).to eq(kept.size)
      expect(things("retained_objects")).to eq(kept.size)
    end

    it "tells how many objects a sample stands for, even if others have flushed since it has died" do
      collector.sample_rate = 0.1
      reader = collector.open_reader
      allocate(1000)
      collector.sample_rate = 1.0
      2.times { collector.flush(gc: true) }
      expect(Pprof.decode(reader.flush).comments).to include("greatest_weight=10")
    end

    it "measures a reader's own interval" do
      collector
      sleep 0.05
      reader = collector.open_reader
      reader.flush
      of_reader = reader.flush.duration_nanos
      of_all = collector.flush.duration_nanos
      expect(of_reader).to be_between(1, of_all - 50_000_000)
    end

    it "does not keep classes alive for readers that rarely flush" do
      reader = collector.open_reader
      classes = ObjectSpace::WeakMap.new
      # Not on this machine stack, whose remains the VM may take for references.
      Thread.new { 50.times { Class.new.tap { |type| classes[type] = type.new.hash } } }.join
      collector.flush(gc: true)
      2.times { GC.start }
      # Ruby 4.0's VM itself keeps 11 of the 50.
      expect(classes.size).to be < 25
      reported = Pprof.decode(reader.flush).by_class("allocations")
      expect(reported.fetch("(anonymous Object)")).to eq(50)
    end

    it "keeps unreported allocations when a flush fails" do
      reader = collector.open_reader
      allocate(10)
      GC.start
      5.times do
        thread = Thread.new do
          Thread.handle_interrupt(RuntimeError => :on_blocking) do
            Thread.current.raise("stop")
            reader.flush
          end
        end
        thread.report_on_exception = false
        expect { thread.join }.to raise_error("stop")
      end
      expect([things("allocations", from: reader), things("allocations")]).to eq([10, 10])
    end

    it "fails if there are already seven" do
      7.times { collector.open_reader }
      expect { collector.open_reader }.to raise_error(MemprofilerPprof::Error, /7 open readers: close one/)
    end

    it "continues in a forked child, which reports its own allocations" do
      outcome = run_ruby(<<~RUBY)
        Thing = Class.new
        clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) }
        collector = new_collector(sample_rate: 1.0).start
        reader = collector.open_reader
        KEPT = [Thing.new]
        sleep 0.1
        before = clock.call
        pid = fork do
          KEPT.concat([Thing.new, Thing.new])
          profile = reader.flush
          puts profile.allocation_samples_count >= 2, profile.duration_nanos.between?(1, clock.call - before)
        end
        Process.wait(pid)
      RUBY
      expect(outcome.stdout.split).to eq(%w[true true]), outcome.to_s
    end
  end

  describe "#open_reader with a block" do
    it "closes the reader and returns the block's value" do
      opened = nil
      expect(collector.open_reader { |reader| (opened = reader) && 3 }).to eq(3)
      expect(opened).to be_closed
    end

    it "closes the reader if the block raises" do
      8.times { expect { collector.open_reader { raise "no" } }.to raise_error("no") }
      expect(collector.open_reader).not_to be_closed
    end

    # Runs code that can have threads enter the blocks of so many readers, and print what a block returns in a child.
    def forking(code)
      run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        enter = lambda do |count|
          opened = Queue.new
          count.times { Thread.new { collector.open_reader { |reader| (opened << reader) && sleep } } }
          Array.new(count) { opened.pop }
        end
        in_child = ->(&block) { Process.wait(fork { p block.call }) }
        #{code}
      RUBY
    end

    it "closes the reader in a forked child, which lacks the block's thread" do
      outcome = forking(<<~RUBY)
        readers = enter.call(7)
        in_child.call { [readers.count(&:closed?), Array.new(7) { collector.open_reader }.size] }
        p readers.count(&:closed?)
      RUBY
      expect(outcome.stdout.split("\n")).to eq(["[7, 7]", "0"]), outcome.to_s
    end

    it "keeps the reader in a child that is forked in the block" do
      outcome = forking("collector.open_reader { |reader| in_child.call { reader.flush && reader.closed? } }")
      expect(outcome.stdout).to eq("false\n"), outcome.to_s
    end
  end

  describe MemprofilerPprof::Reader do
    it "is forgotten when it is closed, and another can replace it" do
      reader = collector.open_reader
      kept = allocate(4)
      allocate(3)
      GC.start
      reader.close
      other = collector.open_reader
      expect([things("allocations", from: other), things("allocations")]).to eq([0, 7])
      expect(kept.size).to eq(4)
    end

    it "can be closed again without closing another" do
      reader = collector.open_reader
      reader.close
      other = collector.open_reader
      expect(reader.close).to be_nil
      expect(other.flush).to be_a(MemprofilerPprof::ProfileData)
    end

    it "cannot be flushed when it is closed" do
      reader = collector.open_reader.tap(&:close)
      expect { reader.flush }.to raise_error(MemprofilerPprof::Error, "the reader is closed")
    end

    it "neither runs nor knows who holds what when it is closed" do
      reader = collector.open_reader
      expect { reader.close }.to change(reader, :running?).from(true).to(false)
      expect { reader.retainers }.to raise_error(MemprofilerPprof::Error, "the reader is closed")
    end

    it "takes the options of a flush" do
      expect(collector.open_reader.flush(sample_type_names: :go).sample_type_names).to eq(:go)
      expect { collector.open_reader.flush(reader: 1) }.to raise_error(ArgumentError, /keyword must be .*:reader/)
    end

    it "has a readable inspect" do
      reader = collector.open_reader
      expect(reader.inspect).to match(/\A#<MemprofilerPprof::Reader 1 of #<MemprofilerPprof::Collector/)
      expect(reader.tap(&:close).inspect).to start_with("#<MemprofilerPprof::Reader closed of ")
    end

    it "gives a flusher its own view of allocations" do
      reported = []
      flusher = MemprofilerPprof::BlockFlusher.new(collector.open_reader, on_flush: ->(profile) { reported << profile })
      kept = allocate(3)
      flusher.run { collector.flush }
      expect(reported.map { |profile| total(profile, "allocations") }).to eq([kept.size])
    end
  end

  describe "#peek" do
    it "leaves everything to be reported again" do
      kept = allocate(2)
      allocate(3)
      3.times { expect(total(collector.peek(gc: true), "allocations")).to eq(5) }
      expect(things("allocations")).to eq(5)
      expect(things("allocations")).to eq(0)
      expect(kept.size).to eq(2)
    end

    it "has no duration" do
      expect(collector.peek.duration_nanos).to eq(0)
      expect(Pprof.decode(collector.peek).duration_nanos).to eq(0)
    end

    it "leaves a stopped collector to its last flush" do
      allocate(2)
      collector.stop
      2.times { expect(total(collector.peek, "allocations")).to eq(2) }
      expect(things("allocations")).to eq(2)
      expect(MemprofilerPprof.collectors).not_to include(collector)
    end
  end

  describe "#flush(sample_type_names:)" do
    it "has the names for this profile" do
      profile = collector.flush(sample_type_names: :go)
      expect(profile.sample_type_names).to eq(:go)
      expect(Pprof.decode(profile).type_names).to eq(%w[alloc_objects alloc_space inuse_objects inuse_space])
      expect(collector.flush.sample_type_names).to eq(:ruby)
      expect { collector.flush(sample_type_names: :perl) }.to raise_error(ArgumentError, /:ruby or :go, got :perl/)
    end
  end

  describe "#flush(default_sample_type:)" do
    it "sets what a viewer shows first" do
      profile = collector.flush(sample_type_names: :go, default_sample_type: :allocations_size)
      expect(Pprof.decode(profile).default_sample_type).to eq("alloc_space")
      expect(Pprof.decode(collector.flush).default_sample_type).to eq("retained_size")
      expect { collector.flush(default_sample_type: :alloc_space) }.to raise_error(ArgumentError, /got :alloc_space/)
    end
  end

  describe "#flush" do
    it "has the time of the flush" do
      before = Time.now
      profile = collector.flush
      expect(Time.at(0, profile.time_nanos, :nsec)).to be_between(before, Time.now)
      expect(Pprof.decode(profile).time_nanos).to eq(profile.time_nanos)
    end
  end

  describe "#start(only:)" do
    let!(:collector) { new_collector(sample_rate: 1.0) }

    def allocate_everywhere
      allocate(1)
      Enumerator.new { |out| out << allocate(10) }.next
      Thread.new { allocate(100) }.join
    end

    { nil => 111, thread: 11, fiber: 1 }.each do |only, count|
      it "samples the allocations of #{only ? "the calling #{only}" : "all"}" do
        collector.start(only: only)
        allocate_everywhere
        expect(collector.only).to eq(only)
        collector.stop
        expect(things("allocations")).to eq(count)
      end
    end

    it "holds until the next start" do
      collector.start(only: :thread).stop
      collector.start
      allocate_everywhere
      expect(collector.only).to be_nil
      expect(things("allocations")).to eq(111)
    end

    { thread: -> { Thread.current }, fiber: -> { Fiber.current } }.each do |only, current|
      it "keeps the #{only} until it stops, since another might get its address" do
        expect(ObjectSpace.reachable_objects_from(collector.start(only: only))).to include(current.call)
        expect(ObjectSpace.reachable_objects_from(collector.stop)).not_to include(current.call)
      end
    end

    it "refuses an unknown value" do
      expect { collector.start(only: :process) }
        .to raise_error(ArgumentError, "only must be :thread or :fiber, got :process")
      expect { collector.start(only: "thread") }.to raise_error(TypeError, /only must be .* got "thread"/)
      expect { collector.start(whose: 1) }.to raise_error(ArgumentError, /whose/)
    end
  end

  describe "#profile(only:)" do
    it "samples like start" do
      profile = Pprof.decode(new_collector(sample_rate: 1.0).profile(only: :thread) do
        Thread.new { allocate(100) }.join
        allocate(2)
      end)
      expect(profile.by_class("allocations")["Thing"]).to eq(2)
    end
  end
end
