# frozen_string_literal: true

# Up to Ruby 3.4 the main Ractor's hooks do not see garbage collections in other Ractors, and the death of a Ractor
# object disables all hooks (Bug #19112).
RSpec.describe MemprofilerPprof::Collector, "beside other Ractors", :liveness, :moving, :threads do
  affected = MemprofilerPprof::RactorGuard.needed?
  # Where each sweep counts as missed.
  forgetful = RUBY_VERSION < "4.0" && ENV["SPEC_LIVENESS"] == "freeobj"

  let(:reader) { File.expand_path("../support/pprof", __dir__) }

  # @return the `result` of the code, in a program with classes to count and methods to count them
  def result_of(code)
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental", "-r#{reader}"])
      Early, Late, Foreign = Class.new, Class.new, Class.new
      def started = @started ||= new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start
      def missed = started.stats[:missed_collections]
      def count(type, name) = Pprof.decode(started.flush).by_class(type).fetch(name, 0)
      # Ruby 4.0 has no Ractor#take.
      def finish(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
      #{code}
      $stdout.binmode.write(Marshal.dump(result))
    RUBY
    raise outcome.to_s unless outcome.success?

    Marshal.load(outcome.stdout.b) # rubocop:disable Security/MarshalLoad
  end

  it "cannot be used by them" do
    expect(result_of("started; result = finish(Ractor.new { MemprofilerPprof.collectors.size })")).to eq(0)
  end

  context "when one of them collects garbage" do
    before { skip "on Ruby #{RUBY_VERSION} no collector runs beside a Ractor" if affected }

    # The Ractor is kept: its death has consequences of its own. What should die is in no Array, which the conservative
    # stack scan might find.
    let(:collected) do
      <<~RUBY
        started
        kept = Array.new(500) { Early.new }
        1000.times { Early.new }
        ractor = Ractor.new { 3.times { GC.start }; Ractor.main.send(:collected); Ractor.receive }
        Ractor.receive
      RUBY
    end

    it "notices what it did not see", if: RUBY_VERSION < "4.0" do
      expect(result_of("#{collected}; started.flush; result = missed")).to be > 0
    end

    it "keeps none of the dead" do
      # The conservative stack scan may keep one or two.
      expect(result_of("#{collected}; result = count(:retained_objects, 'Early')")).to be <= 510
    end

    it "keeps its data on allocations" do
      expect(result_of("#{collected}; result = count(:allocations, 'Early')")).to eq(1500)
    end

    it "counts exactly what is allocated afterwards", unless: forgetful do
      expect(result_of(<<~RUBY)).to eq([1000, 1000])
        #{collected}
        started.flush
        late = Array.new(1000) { Late.new }
        result = [count(:retained_objects, "Late")]
        GC.start
        result << count(:retained_objects, "Late")
      RUBY
    end

    it "notices deaths of what is allocated afterwards" do
      expect(result_of(<<~RUBY)).to be <= 10
        #{collected}
        started.flush
        1000.times { Late.new }
        GC.start
        result = count(:retained_objects, "Late")
      RUBY
    end

    it "misses nothing if it sees everything", if: RUBY_VERSION >= "4.0" do
      expect(result_of(<<~RUBY)).to match([be_between(500, 510), 0])
        #{collected}
        GC.start
        result = [count(:retained_objects, "Early"), missed]
      RUBY
    end
  end

  context "when Ractor objects have been garbage-collected" do
    # The Ractors end before the collector starts, which works on every Ruby.
    let(:died) do
      <<~RUBY
        born = ObjectSpace::WeakMap.new
        begin_and_end = lambda do
          20.times do
            ractor = Ractor.new { 1 }
            finish(ractor)
            born[ractor] = true
          end
        end
        begin_and_end.call
        sleep 0.01 until Ractor.count == 1
        GC.disable
        started
        GC.enable
        GC.start
        # Now and then the first collection still finds all of them.
        4.times { GC.start unless born.size < 20 }
        raise "no Ractor has died" unless born.size < 20
      RUBY
    end

    it "samples again after the second flush" do
      expect(result_of(<<~RUBY)).to eq([500, 500])
        #{died}
        started.flush
        GC.start
        started.flush
        late = Array.new(500) { Late.new }
        profile = Pprof.decode(started.flush)
        result = %i[allocations retained_objects].map { |type| profile.by_class(type).fetch("Late", 0) }
      RUBY
    end

    it "samples again after the first flush, even if there was no other collection" do
      expect(result_of(<<~RUBY)).to eq(500)
        #{died}
        GC.disable
        started.flush
        late = Array.new(500) { Late.new }
        result = count(:retained_objects, "Late")
      RUBY
    end

    it "reads no object whose death the same collection did not report" do
      expect(result_of(<<~RUBY)).to be <= 10
        #{died.sub("started\n", "started; early = Array.new(50_000) { Early.new }; early.clear\n")}
        result = count(:retained_objects, "Early")
      RUBY
    end

    it "keeps no object that died meanwhile" do
      expect(result_of(<<~RUBY)).to be <= 10
        #{died.sub("started\n", "started; early = Array.new(500) { Early.new }\n")}
        early.clear
        GC.start
        GC.start
        result = count(:retained_objects, "Early")
      RUBY
    end

    it "tracks deaths again" do
      expect(result_of(<<~RUBY)).to be <= 10
        #{died}
        GC.start
        started.flush
        late = Array.new(500) { Late.new }
        late.clear
        GC.start
        result = count(:retained_objects, "Late")
      RUBY
    end

    it "does so for Ractors created after the collector, too" do
      skip "on Ruby #{RUBY_VERSION} creating a Ractor stops the collector" if affected
      expect(result_of(<<~RUBY)).to eq(500)
        started
        10.times { finish(Ractor.new { 1 }) }
        2.times { GC.start }
        started.flush
        GC.start
        started.flush
        late = Array.new(500) { Late.new }
        result = count(:retained_objects, "Late")
      RUBY
    end
  end

  context "when they only allocate" do
    before { skip "on Ruby #{RUBY_VERSION} no collector runs beside a Ractor" if affected }

    let(:allocated) do
      <<~RUBY
        started
        GC.disable
        early = Array.new(500) { Early.new }
        ractor = Ractor.new { Array.new(5000) { Foreign.new }; Ractor.main.send(:allocated); Ractor.receive }
        Ractor.receive
        GC.enable
      RUBY
    end

    it "raises no false alarm", unless: forgetful do
      expect(result_of("#{allocated}; GC.start; started.flush; result = missed")).to eq(0)
    end

    it "counts the main Ractor's own objects exactly", unless: forgetful do
      expect(result_of("#{allocated}; GC.start; result = count(:retained_objects, 'Early')")).to eq(500)
    end
  end

  # While one hook replaces the other. Before each counted once, that was 2^32 - 1 collections less than none.
  it "takes a collection for one that two of its hooks see", if: RUBY_VERSION >= "4.0" do
    expect(result_of(<<~RUBY)).to eq(0)
      ractors = Array.new(2) { Ractor.new { loop { 1000.times { "a" * 100 } && GC.start(full_mark: false) } } }
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 2
      50.times { started.stop && started.start } while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      result = started.flush && missed
    RUBY
  end

  # From Ruby 4.0 on all Ractors share one list of hooks. Before collectors took turns with them, this crashed or hung
  # within seconds.
  it "starts and stops while they allocate and collect garbage" do
    skip "on Ruby #{RUBY_VERSION} no collector runs beside a Ractor" if affected
    expect(result_of(<<~RUBY)).to be > 0
      ractors = Array.new(3) { Ractor.new { loop { 100_000.times { Object.new } && GC.start } } }
      collectors = Array.new(2) { new_collector(sample_rate: 0.1) }
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 3
      while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
        50.times { collectors.each(&:start) && Array.new(10) { Early.new } && collectors.each(&:stop) }
        result = collectors.sum { |collector| collector.flush.duration_nanos }
      end
    RUBY
  end

  # Up to Ruby 3.4 FREEOBJ does not report what other Ractors sweep. Before such sweeps counted as missed, this crashed.
  it "counts nothing as alive that they have swept" do
    expect(result_of(<<~RUBY)).to be <= 10
      @started = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000, liveness: :freeobj).start
      ractor = Ractor.new { Ractor.receive && 60_000.times { Object.new } && Ractor.main.send(:swept) && Ractor.receive }
      GC.start
      Array.new(300_000) { Early.new }.clear
      GC.start(immediate_sweep: false)
      ractor.send(:sweep) && Ractor.receive
      result = count(:retained_objects, "Early")
    RUBY
  end

  context "when the main Ractor comes near the end of its stack, where the hook is removed until the next safe point" do
    before { skip "on Ruby #{RUBY_VERSION} no collector runs beside a Ractor" if affected }

    # Not to the very end: beside Ractors that collect garbage no Ruby survives that.
    let(:deep) do
      <<~'RUBY'
        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        def load_deep(depth) = Marshal.load("\x04\b#{"[\x06" * depth}0")
        def find_depth = 1000.step(by: 8).find { |depth| load_deep(depth) && started.stats[:stack_ends].positive? } + 32
      RUBY
    end

    # From Ruby 4.0 on, the VM waits for all Ractors when a hook is removed, and one of them may be waiting for this
    # one.
    it "waits for none of them" do
      expect(result_of(<<~RUBY)).to eq(100)
        #{deep}
        result = Thread.new do
          depth = find_depth
          ractors = Array.new(2) { Ractor.new { loop { sleep 0.0005 unless GC.start(full_mark: false) } } }
          300.times { load_deep(depth) }
          started.flush
          100.times { Late.new }
          count(:allocations, "Late")
        end.value
      RUBY
    end

    # Freeing files runs postponed jobs, too: all pending ones, on any Ractor.
    it "continues to sample when another Ractor runs its job" do
      late, foreign = result_of(<<~RUBY)
        #{deep}
        result = Thread.new do
          depth = find_depth
          deadline = now + 2
          ractors = Array.new(2) do
            Ractor.new(deadline) { |time| GC.start if Array.new(50) { [Foreign.new, File.open(IO::NULL)] } while now < time }
          end
          load_deep(depth) while now < deadline
          # If a Ractor is sweeping at this moment, a VM before 4.0 can lose an added hook.
          ractors.each { |ractor| finish(ractor) }
          started.flush
          100.times { Late.new }
          %w[Late Foreign].map { |name| count(:allocations, name) }
        end.value
      RUBY
      expect(late).to eq(100)
      expect(foreign).to eq(0) if RUBY_VERSION < "4.0"
    end
  end

  # Also where a Ractor stops the collector: deaths are tracked until the next flush.
  context "when the pages of objects that died unnoticed are gone" do
    let(:gone) do
      <<~RUBY
        started
        early = Array.new(300_000) { Early.new }
        ractor = Ractor.new { Ractor.receive; 4.times { GC.start }; Ractor.main.send(:collected); Ractor.receive }
        early.clear
        early = nil
        ractor.send(:go)
        Ractor.receive
      RUBY
    end

    it "reads none of their mark bits at the next collection" do
      expect(result_of("#{gone}; 3.times { GC.start }; result = count(:retained_objects, 'Early')")).to be <= 10
    end

    it "ignores them when objects move" do
      code = "#{gone}; ractor.send(:end); finish(Ractor.new { GC.compact }); result = count(:retained_objects, 'Early')"
      expect(result_of(code)).to be <= 10
    end
  end

  # On Ruby 4.0 a query for the mark bits of such an object returns its id, too, for which the VM may allocate.
  it "works with objects that have an object_id" do
    retained, missed = result_of(<<~RUBY)
      finish(Ractor.new { 1 })
      # Its thread may not have ended yet, and some Rubies start no collector beside it.
      sleep 0.01 while Ractor.count > 1
      2.times { GC.start }
      kept = Array.new(1000) { Late.new } if started
      kept.each(&:object_id)
      # Finding out whether they are shareable takes a walk through their references.
      kept.each { |object| object.instance_variable_set(:@text, +"text") && object.freeze }
      GC.start
      result = [count(:retained_objects, "Late"), missed]
    RUBY
    skip "the Ractor object died late, which was noticed" if missed.positive? && RUBY_VERSION < "4.0"
    expect(retained).to eq(1000)
  end
end
