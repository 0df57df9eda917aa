# frozen_string_literal: true

require "objspace"
require "set"

# At rate 1 a profile must equal the truth, which comes from ObjectSpace: it tracks allocations by other means.
RSpec.describe MemprofilerPprof::Collector, "at rate 1", :liveness, :moving, :jit, :threads do
  # Up to Ruby 3.2 the lines from ObjectSpace, which are the truth here, are wrong with YJIT.
  lines_known = RUBY_VERSION >= "3.3" || !RubyVM.const_defined?(:YJIT) || !RubyVM::YJIT.enabled?

  # The lines of `allocate` below.
  let(:sites) { workload.instance_method(:allocate).source_location.last.then { |line| line..(line + 20) } }

  # Randomly allocates and drops objects of many kinds, each kind on its own line.
  let(:workload) do
    Class.new do
      const_set(:Node, Struct.new(:left, :right))
      const_set(:Plain, Class.new { def initialize(value) = @value = value })
      const_set(:Wide, Class.new { def initialize = 12.times { |i| instance_variable_set(:"@v#{i}", i) } })

      const_set(:Text, Class.new(String))
      const_set(:List, Class.new(Array))
      const_set(:Table, Class.new(Hash))
      const_set(:OWN, [self::Node, self::Plain, self::Wide, self::Text, self::List, self::Table].freeze)

      def initialize(seed)
        @random = Random.new(seed)
        @kept = []
      end

      attr_reader :kept

      def allocate(kind)
        case kind
        when 0 then "short"
        when 1 then "x" * 5000
        when 2 then Array.new(3) { |i| i }
        when 3 then Array.new(500, 7)
        when 4 then { a: 1 }
        when 5 then (1..20).to_h { |i| [i, i] }
        when 6 then self.class::Node.new(1, 2)
        when 7 then proc { kind }
        when 8 then self.class::Plain.new(kind)
        when 9 then self.class::Wide.new
        when 10 then Object.new
        when 11 then 2**100
        when 12 then "sub".match(/u/)
        when 13 then Set.new([kind])
        when 14 then self.class::Text.new("t" * 100)
        when 15 then self.class::List.new(50)
        when 16 then self.class::Table.new.merge!(a: 1, b: 2)
        else kind.to_s
        end
      end

      def run(steps)
        steps.times do
          if @random.rand < 0.6
            @kept << allocate(@random.rand(18))
          elsif @kept.any?
            @kept.delete_at(@random.rand(@kept.size))
          end
        end
      end
    end
  end

  # [line, class name] => [objects, bytes], of the objects that were allocated in this file according to ObjectSpace.
  def truth
    ObjectSpace.each_object.with_object(Hash.new { |hash, key| hash[key] = [0, 0] }) do |object, counts|
      line = ObjectSpace.allocation_sourceline(object)
      next unless sites.cover?(line) && ObjectSpace.allocation_sourcefile(object) == __FILE__

      key = [line, object.class.name]
      counts[key][0] += 1
      counts[key][1] += ObjectSpace.memsize_of(object)
    end
  end

  def reported(profile)
    profile.samples.each_with_object(Hash.new { |hash, key| hash[key] = [0, 0] }) do |sample, counts|
      frame = sample.frames.first
      name = sample.labels["class"]
      next unless frame&.file == __FILE__ && sites.cover?(frame.line) && sample[:retained_objects].positive?
      # Internal objects have no Ruby class, and ObjectSpace does not show them.
      next if name.match?(/\A\((?!anonymous)/)

      key = [frame.line, name.start_with?("(anonymous") ? nil : name]
      counts[key][0] += sample[:retained_objects]
      counts[key][1] += sample[:retained_size]
    end
  end

  # class name => [objects, bytes], of the workload's own classes. Unlike allocation_sourceline, ObjectSpace finds these
  # even when objects have moved.
  def truth_by_class
    workload::OWN.to_h do |kind|
      objects = ObjectSpace.each_object(kind).to_a
      [kind.name, [objects.size, objects.sum { |object| ObjectSpace.memsize_of(object) }]]
    end
  end

  def reported_by_class(profile)
    workload::OWN.to_h do |kind|
      [kind.name, %i[retained_objects retained_size].map { |type| profile.by_class(type).fetch(kind.name, 0) }]
    end
  end

  def expect_exact_by_class(collector)
    GC.start
    GC.disable
    expected = truth_by_class
    expect(reported_by_class(Pprof.decode(collector.flush))).to eq(expected)
    expect(expected.values.sum(&:first)).to be > 100
  ensure
    GC.enable
  end

  # Both at the same moment: nothing may be collected in between.
  define_method(:expect_exact) do |collector|
    # Where objects move, ObjectSpace loses their lines.
    next expect_exact_by_class(collector) if !lines_known || GC.auto_compact

    GC.start
    GC.disable
    # In this order: what the flush allocates is not on the workload's lines.
    expected = truth
    actual = reported(Pprof.decode(collector.flush))
    expect(actual).to eq(expected)
    expect(actual.sum { |_, (objects, _)| objects }).to be > 100
  ensure
    GC.enable
  end

  around do |example|
    ObjectSpace.trace_object_allocations { example.run }
  ensure
    # If an object dies while nobody traces, whatever reuses its address would be mistaken for it.
    ObjectSpace.trace_object_allocations_clear
  end

  def collector
    @collector ||= new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000)
  end

  3.times do |seed|
    it "counts and measures the living per line and class, over several flushes (seed #{seed})" do
      program = workload.new(seed)
      collector.start
      4.times do
        program.run(3000)
        expect_exact(collector)
      end
    end
  end

  it "is exact with threads" do
    programs = Array.new(4) { |seed| workload.new(seed) }
    collector.start
    2.times do
      programs.map { |program| Thread.new { program.run(2000) } }.each(&:join)
      expect_exact(collector)
    end
  end

  it "is exact when GC.compact moves objects" do
    program = workload.new(7)
    collector.start
    3.times do
      program.run(2000)
      GC.compact
      expect_exact_by_class(collector)
    end
  end

  it "is exact with GC.auto_compact" do
    skip "Ruby 3.1 crashes by itself, see script/test.d/lane.rb" if RUBY_VERSION < "3.2"
    program = workload.new(8)
    before = GC.auto_compact
    GC.auto_compact = true
    collector.start
    3.times do
      program.run(5000)
      expect_exact_by_class(collector)
    end
  ensure
    GC.auto_compact = before
  end

  it "is exact in a flush after stop" do
    program = workload.new(9)
    collector.start
    program.run(3000)
    collector.stop
    program.kept.shift(500)
    expect_exact(collector)
  end

  it "is exact in the middle of a lazy sweep" do
    program = workload.new(10)
    collector.start
    program.run(5000)
    program.kept.clear
    state = 20.times do
      # Garbage on many pages, so that the sweep takes several steps. A compiler that allocates may still finish it.
      Array.new(100_000) { Object.new }
      GC.start(full_mark: true, immediate_sweep: false)
      found = GC.latest_gc_info(:state)
      break found if found == :sweeping
    end
    expect(state).to eq(:sweeping)
    reported = reported(Pprof.decode(collector.flush))
    expect(reported.sum { |_, (objects, _)| objects }).to be < 100
  end
end
