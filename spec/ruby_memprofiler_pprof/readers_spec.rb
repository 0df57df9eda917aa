# frozen_string_literal: true

# How other tools read a profile: Google's protobuf library and `go tool pprof`.
module Readers
  # Names that readers have mangled, and names that look like something else.
  class Foo
    class << self
      attr_reader :kept

      def run
        @kept = [new <=> 1, new.größe?, +new, new.baz, new.dynamic]
        # The source line that -list shows.
        @kept << Array.new(100) { Object.new }
        @kept << eval("class Fresh; Object.new; end", binding, __FILE__, __LINE__)
      end
    end

    def <=>(_other)
      self[1] = 2
      Object.new
    end

    def []=(_index, _value)
      @object = Object.new
    end

    def größe? # rubocop:disable Naming/AsciiIdentifiers
      Object.new
    end

    def +@
      self.class::Sub.new.<<
    end

    def baz
      [1].map { 1.then { Object.new } }
    end

    define_method(:dynamic) { [1].map { Object.new } }

    # In a class with three segments.
    class Sub
      def <<(*)
        Object.new
      end
    end
  end
end

RSpec.describe MemprofilerPprof::Collector, "profiles for readers", :liveness, :moving do
  let(:data) { new_collector(sample_rate: 1.0).profile { Readers::Foo.run } }
  let(:profile) { Pprof.decode(data) }
  let(:tricky_names) do
    ["<main>", "<class:Fresh>", "block (2 levels) in Readers::Foo#baz", "block in Readers::Foo#dynamic",
     "Readers::Foo#dynamic", "Readers::Foo.run", "Readers::Foo#<=>", "Readers::Foo#[]=", "Readers::Foo#größe?",
     "Readers::Foo#+@", "Readers::Foo::Sub#<<", *ClassNew.frames, "Kernel#eval"]
  end

  after do
    singleton = Readers::Foo.singleton_class
    singleton.send(:remove_const, :Fresh) if singleton.const_defined?(:Fresh, false)
  end

  it "contain the names that the examples below expect" do
    expect(profile.samples.flat_map(&:names)).to include(*tricky_names)
  end

  it "follow the rules of existing readers" do
    expect(Pprof::Rules.violations(profile)).to eq([])
  end

  describe "read with Google's protobuf library", :protobuf do
    let(:theirs) { Pprof.decode_with_protobuf(data) }

    it "have the same samples" do
      expect(theirs.samples).to eq(profile.samples)
    end

    %i[sample_types default_sample_type period period_type time_nanos duration_nanos comments mappings doc_url
       drop_frames].each do |field|
      it "have the same #{field}" do
        expect(theirs.public_send(field)).to eq(profile.public_send(field))
      end
    end
  end

  describe "header" do
    it "has the sample types in order, what is retained last" do
      expect(profile.sample_types.map(&:to_a)).to eq(
        [%w[allocations count], %w[allocations_size bytes], %w[retained_objects count], %w[retained_size bytes]]
      )
      expect(profile.default_sample_type).to eq("retained_size")
    end

    it "has one mapping, which needs no symbolization" do
      expect(profile.mapping).to have_attributes(id: 1, file: "ruby", build_id: "", has_functions: true,
                                                 has_filenames: true, has_line_numbers: true)
    end

    it "has the allocations per sample as its period" do
      sparse = Pprof.decode(new_collector(sample_rate: 0.02).profile { nil })
      expect([sparse.period, sparse.period_type.to_a]).to eq([50, %w[allocations count]])
    end

    it "has the time of the flush, and how long allocations were counted" do
      clock = -> { Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond) }
      collector = new_collector.start
      sleep 0.1
      began = clock.call
      collector.flush
      sleep 0.02
      before = clock.call
      profile = Pprof.decode(collector.flush)
      after = clock.call
      expect(profile.time_nanos).to be_between(before, after)
      expect(profile.duration_nanos).to be_between(20_000_000, after - began)
    end

    it "says in its comments how it was made" do
      expect(profile.comments).to include(
        "ruby_memprofiler_pprof #{MemprofilerPprof::VERSION}", /\A#{RUBY_ENGINE} #{Regexp.escape(RUBY_VERSION)}/,
        /\Asample_rate=1(\.0)?\z/, /\Abt_method=cfp\z/, /\Aliveness=/
      )
    end
  end

  describe "samples" do
    def allocate(count)
      Array.new(count) { Object.new }
    end

    it "are merged for equal stacks and labels" do
      samples = profile_of { @kept = allocate(1000) }.samples.select { |sample| sample.labels["class"] == "Object" }
      expect(samples.map { |sample| sample[:retained_objects] }).to eq([1000])
    end

    it "are separate for objects of different classes" do
      profile = profile_of { @kept = Array.new(10) { |i| i.even? ? Object.new : String.new } }
      expect(profile.by_class).to include("Object" => 5, "String" => 5)
    end

    it "represent the whole program, within chance" do
      profile = profile_of(sample_rate: 0.1) { @kept = allocate(100_000) }
      deviation = 6 * Math.sqrt(100_000 * 0.9 / 0.1)
      totals = %i[allocations retained_objects].map { |type| profile.by_class(type)["Object"] }
      expect(totals).to all(be_within(deviation).of(100_000))
      expect(profile.by_class(:retained_size)["Object"]).to be_within(deviation * 40).of(4_000_000)
    end

    it "name files absolutely" do
      files = profile.samples.flat_map(&:frames).map(&:file).uniq
      expect(files).to include(__FILE__).and all(start_with("/"))
    end
  end

  describe "read with go tool pprof", :go do
    # The output of a command that reports no problems, with names intact and nothing left out.
    def pprof(*flags, **options)
      result = Pprof::GoPprof.run(data, "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", *flags, **options)
      expect([result.stderr, result.success?]).to eq(["", true])
      result.stdout.dup.force_encoding(Encoding::UTF_8)
    end

    it "have every name in -top" do
      lines = pprof("-top", "-sample_index=allocations").lines(chomp: true)
      names = lines.filter_map { |line| line[/\A.*%  (\S.*)\z/, 1] }
      expect(names).to match_array(profile.samples.flat_map(&:names).uniq)
    end

    it "have every stack in -traces" do
      blocks = pprof("-traces", "-sample_index=allocations").split(/^-----.*\n/).drop(1)
      stacks = blocks.map do |block|
        block.lines(chomp: true).grep_v(/\A *class:/).map { |line| line.sub(/\A *\d* {3}/, "") }.reject(&:empty?)
      end
      expect(stacks).to match_array(profile.samples.map(&:names))
    end

    it "have the classes in -tags" do
      tags = pprof("-tags", "-sample_index=retained_objects")
      expect(tags).to match(/class: Total \d+/).and match(/^ *#{profile.by_class["Object"]}(\.0)? .*: Object$/)
    end

    it "have callers and callees in -peek" do
      lines = pprof("-peek", "Foo#<=>$").lines(chomp: true)
      names = lines.filter_map { |line| line[/ \| +(.+)\z/, 1] }
      expect(names.first(2)).to eq(["Readers::Foo.run", "Readers::Foo#<=>"])
      expect(names.drop(2)).to contain_exactly("Readers::Foo#[]=", *ClassNew.frames)
    end

    it "have the source lines in -list" do
      listing = pprof("-list", "block in Readers::Foo.run", "-sample_index=retained_objects", "-tagfocus=class=Object")
      expect(listing).to include("ROUTINE ======================== block in Readers::Foo.run in #{__FILE__}")
      # Flat, which is 0 if Class#new is in between, and cumulative.
      flat = ClassNew::FRAME ? "." : "100"
      expect(listing).to match(/^ *#{Regexp.escape(flat)} +100 +\d+: +@kept << Array\.new\(100\) \{ Object\.new \}$/)
    end

    it "have nothing left when they are their own -diff_base" do
      expect(pprof("-top", base: data)).to match(/accounting for 0, 0% of \d+|of 0 total/)
    end

    it "have what was added when -diff_base is an older one" do
      collector = new_collector(sample_rate: 1.0).start
      @kept = [Array.new(10) { Object.allocate }]
      older = collector.flush
      @kept << Array.new(7) { Object.allocate }
      newer = collector.flush
      flags = ["-top", "-sample_index=retained_objects", "-tagfocus=class=Object"]
      result = Pprof::GoPprof.run(newer, *flags, base: older)
      expect([result.stderr, result.stdout[/^ +7 .*Class#allocate/]]).to match(["", /\A +7 /])
    end
  end
end
