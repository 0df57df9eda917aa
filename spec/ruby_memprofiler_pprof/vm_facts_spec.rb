# frozen_string_literal: true

require "json"
require "tmpdir"

# What the gem relies on in CRuby, measured on the running Ruby, without a collector: each program counts the VM's
# events with an extension of its own. IMPLEMENTATION.md has the list, and says what else would notice.
RSpec.describe "The VM", :threads do
  before do
    reason = CompiledExtension.missing
    skip reason if reason
  end

  # The events that the extension can receive.
  setting = <<~RUBY
    require ARGV.first
    require "json"
    EVERYTHING = %i[newobj freeobj start end_mark end_sweep].freeze
    # One object each.
    class Followed < String; end
    VmEvents.follow(Followed)
    def followed = Followed.new(capacity: 100) << "x" * 100
    # Symbols and the like that are created at first use.
    3.times { VmEvents.counts; GC.stat(:total_allocated_objects); GC.latest_gc_info(:state); followed }
    def counts = VmEvents.counts
    # How many objects the block allocates: according to the VM's events, and to its counter. Not the first time, which
    # fills caches.
    def reported_and_counted(*events)
      measure = lambda do
        reported = VmEvents.counts[:newobj]
        before = GC.stat(:total_allocated_objects)
        VmEvents.watch(*events)
        yield
        VmEvents.unwatch
        counted = GC.stat(:total_allocated_objects) - before
        [VmEvents.counts[:newobj] - reported, counted]
      end
      measure.call
      measure.call
    end
    def kept = @kept ||= []
    # Random lives and deaths, with collections of all kinds in between.
    def churn(steps, random = Random.new(1))
      steps.times do |step|
        kept << followed
        kept.delete_at(random.rand(kept.size)) if random.rand < 0.9
        Array.new(10) { Object.new }
        GC.start(full_mark: step.even?, immediate_sweep: step % 3 == 0) if step % 200 == 0
      end
    end
  RUBY

  # Not under SPEC_GC: Ruby counts an object that moves as another allocation, and collections are what is measured.
  # @return the code's `result`, in a program that has the extension
  define_method(:result_of) do |code, env: {}, **options|
    outcome = run_ruby("#{setting}\n#{code}\nprint JSON.generate([result])",
                       options: ["-W:no-experimental"], args: [extension.library],
                       env: { "SPEC_GC" => nil, **env }, **options)
    expect(outcome).to be_success, outcome.to_s
    JSON.parse(outcome.stdout, symbolize_names: true).first
  end

  let(:extension) { CompiledExtension.new("vm_events") }

  describe "allocating" do
    it "reports each object, whatever allocates it" do
      reported, counted = result_of(<<~RUBY)
        things = lambda do
          [[1], { a: 1 }, "a\#{1}", 2**70, 1.0e300 * 10, Object.new, Struct.new(:a).new(1), proc {}, "a".match(/a/),
           Class.new, Thread.new {}.join, (1..Object.new.hash), "x" * 1000, [1, 2].each, binding, Array.new(100) { |i| [i] }]
        end
        result = reported_and_counted(:newobj) { 200.times { things.call } }
      RUBY
      expect(reported).to eq(counted).and be > 20_000
    end

    it "does so while it reports deaths, too" do
      reported, counted = result_of(<<~RUBY)
        result = reported_and_counted(*EVERYTHING) { churn(2000) }
      RUBY
      expect(reported).to eq(counted)
    end

    it "has set type and class by then" do
      counts = result_of("VmEvents.watch(:newobj); churn(2000); VmEvents.unwatch; result = counts")
      expect(counts).to include(born: 2000, typeless: 0)
    end

    it "lays its events out as the gem reads them" do
      counts = result_of("VmEvents.watch(:newobj, :freeobj); churn(2000); VmEvents.unwatch; result = counts")
      expect(counts).to include(misread: 0, freeobj: be > 1000)
    end
  end

  describe "collecting garbage" do
    before { skip "objects are followed by their addresses" if ENV["SPEC_GC"] == "compact" }

    # At the beginning and at the end everything dead has been swept: GC.disable does that.
    let(:churned) { <<~RUBY }
      GC.disable
      before = GC.count
      VmEvents.watch(*EVERYTHING)
      GC.enable
      churn(10_000)
      GC.disable
      VmEvents.unwatch
      result = [counts, GC.count - before, ObjectSpace.each_object(Followed).count]
    RUBY

    it "counts the collections whose mark phases and sweeps it reports" do
      counts, collections, = result_of(churned)
      expect(counts).to include(start: collections, end_mark: collections, end_sweep: collections)
      expect(collections).to be >= 50
    end

    it "frees nothing before a mark phase has ended" do
      expect(result_of(churned).first).to include(early: 0, freed: be > 5000)
    end

    it "has marked at the end of a mark phase exactly what it will not free" do
      expect(result_of(churned).first).to include(unforeseen: 0, condemned: 0)
    end

    it "reports each death once, before the object is touched" do
      counts, _, living = result_of(churned)
      expect(counts).to include(born: 10_000, damaged: 0, freed: 10_000 - living)
    end

    it "finishes a lazy sweep when it is disabled, and frees everything that was not marked" do
      before, after = result_of(<<~RUBY)
        VmEvents.watch(*EVERYTHING)
        result = 20.times do
          GC.disable
          100_000.times { |i| (i % 100).zero? ? followed : Object.new }
          GC.enable
          GC.start(full_mark: true, immediate_sweep: false)
          state = GC.latest_gc_info(:state)
          waiting = VmEvents.counts
          GC.disable
          # There may be no dead object in the pages that are left.
          next GC.enable unless state == :sweeping && waiting[:condemned].positive?

          break [[state, waiting[:condemned]], [GC.latest_gc_info(:state), counts[:condemned]]]
        end
      RUBY
      expect([before, after]).to match([["sweeping", be > 0], ["none", 0]])
    end

    it "frees nothing that was old in a minor collection, even if it has become unprotected" do
      minor, majors, major = result_of(<<~RUBY)
        VmEvents.watch(*EVERYTHING)
        1000.times { kept << followed }
        4.times { GC.start }
        # If there are many, the VM makes the next collection a major one.
        kept.first(20).each { |object| VmEvents.unprotect(object) }
        kept.clear
        majors = Array.new(10) { GC.start(full_mark: false) || GC.latest_gc_info(:major_by) }.compact
        minor = counts
        GC.start
        result = [minor, majors, counts]
      RUBY
      expect(majors).to eq([])
      expect(minor).to include(freed: 0, condemned: 0)
      expect(major).to include(freed: be > 990)
    end

    it "reports its state without allocating" do
      expect(result_of(<<~RUBY)).to eq(0)
        _, result = reported_and_counted { 1000.times { GC.latest_gc_info(:state); GC.latest_gc_info(:major_by); GC.count } }
      RUBY
    end

    it "reports no moves" do
      moved = result_of(<<~RUBY)
        require "objspace"
        # Gaps to move into.
        GC.disable
        10_000.times { followed.then { |object| kept << object if rand(4).zero? } }
        GC.enable
        addresses = -> { kept.map { |object| ObjectSpace.dump(object)[/0x\\h+/] } }
        before = addresses.call
        VmEvents.watch(*EVERYTHING)
        GC.compact
        VmEvents.unwatch
        result = [counts.values_at(:born, :damaged), before.zip(addresses.call).count { |one, other| one != other }]
      RUBY
      expect(moved).to match([[0, 0], be > 100])
    end

    # Collections that begin inside any hook.
    it "reports those inside a hook from Ruby 3.4 on" do
      environment = { "RUBY_GC_HEAP_INIT_SLOTS" => "1000000", "RUBY_GC_MALLOC_LIMIT" => "300000",
                      "RUBY_GC_MALLOC_LIMIT_MAX" => "300000" }
      reported, counted = result_of(<<~RUBY, env: environment)
        require "objspace"
        # So that none has begun before.
        GC.start
        before = GC.count
        VmEvents.watch(:end_mark)
        ObjectSpace.trace_object_allocations { 1_000_000.times { +"x" } }
        VmEvents.unwatch
        result = [counts[:end_mark], GC.count - before]
      RUBY
      expect(counted).to be > 5
      expect(reported).to RUBY_VERSION < "3.4" ? (be < counted) : eq(counted)
    end
  end

  describe "with Ractors" do
    # Ruby 4.0 has no Ractor#take.
    let(:finish) { "def finish(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take" }

    it "reports collections in others from Ruby 4.0 on" do
      reported, counted = result_of(<<~RUBY)
        #{finish}
        GC.start
        VmEvents.watch(:end_mark)
        before = GC.count
        finish(Ractor.new { 5.times { GC.start } })
        result = [counts[:end_mark], GC.count - before]
      RUBY
      expect(counted).to be >= 5
      expect(reported).to eq(RUBY_VERSION < "4.0" ? counted - 5 : counted)
    end

    it "reports allocations in others from Ruby 4.0 on" do
      # The Ractor is created first, since otherwise not every Ruby survives.
      reported = result_of(<<~RUBY)
        #{finish}
        ractor = Ractor.new { Ractor.main.send(:ready); Ractor.receive; Array.new(20_000) { Object.new }.size }
        Ractor.receive
        VmEvents.watch(:newobj)
        ractor.send(nil)
        finish(ractor)
        result = counts[:newobj]
      RUBY
      expect(reported).to RUBY_VERSION < "4.0" ? (be < 1000) : (be > 20_000)
    end

    it "disables all hooks when a Ractor object dies, up to Ruby 3.4, until a hook is added" do
      alive, dead, again = result_of(<<~RUBY)
        #{finish}
        20.times { finish(Ractor.new { 1 }) }
        sleep 0.01 until Ractor.count == 1
        seen = lambda do
          before = counts[:newobj]
          1000.times { Object.new }
          counts[:newobj] - before > 1000
        end
        GC.disable
        VmEvents.watch(*EVERYTHING)
        result = [seen.call]
        GC.enable
        GC.start
        result << seen.call
        VmEvents.watch(:newobj)
        result << seen.call
      RUBY
      expect([alive, dead, again]).to eq([true, RUBY_VERSION >= "4.0", true])
    end

    it "crashes when one is created while allocations are traced, on the patch releases known for it" do
      # Files left behind by a crash go nowhere.
      outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental", "-robjspace"], chdir: Dir.tmpdir)
        #{finish}
        Process.setrlimit(:CORE, 0)
        ObjectSpace.trace_object_allocations { 5.times { finish(Ractor.new { Object.new; 1 }) } }
      RUBY
      # On Ruby 3.4 it takes a collection in the Ractor, at the wrong moment.
      known = MemprofilerPprof::RactorGuard.needed? && !RUBY_VERSION.start_with?("3.4")
      expect(outcome.status.signaled?).to eq(known)
    end
  end
end
