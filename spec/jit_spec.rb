# frozen_string_literal: true

require "json"

# What the gem reports about compiled code, and that compiled code stays compiled. In separate processes, so that it
# does not matter how the suite itself runs.
module Jit
  # Name => what enables the compiler, and what makes it count its work. Its module is RubyVM::NAME.
  COMPILERS = {
    "YJIT" => { on: ["--yjit"], counting: ["--yjit", "--yjit-stats=quiet"] },
    "ZJIT" => { on: ["--zjit"], counting: ["--zjit", "--zjit-stats=quiet"] }
  }.freeze

  # Allocates by all instructions and calls for which compilers have special code, each on a line of its own, between
  # lines that leave another program counter behind. Leaves out what compilers legitimately do differently: they omit
  # unused objects, turn interpolated Integers into separate Strings, and copy twice in `f(*list, 1)`.
  PROGRAM = <<~'RUBY'
    ONE = 1; LIST = [1, 2].freeze; HASH = { a: 1 }.freeze; TEXT = "abc"; BIG = 2**70
    PAIR = Struct.new(:left, :right)
    class Plain; def initialize(value) = @value = value; end
    class Wide
      def initialize
        @a, @b, @c, @d, @e, @f, @g, @h = 1, 2, 3, 4, 5, 6, 7, 8
        @i = [
          @a
        ]
      end
    end
    class Base
      def up(*list)
        list.size
      end
      def named(a:, b: [a])
        b
      end
    end
    class Sub < Base
      def up(*list)
        ONE.itself
        super(
          *list
        )
      end
      def method_missing(_name, *rest) = rest.size
      def respond_to_missing?(*) = true
    end
    SUB = Sub.new
    def self.keywords(**options) = options.size
    def self.optional(a, b = "x", c = [a]) = c
    def self.with_block(&block)
      ONE.itself
      block.call
    end
    def self.yielding
      ONE.itself
      yield(1,
            "yielded")
    end
    def self.literals
      ONE.itself
      [
        ONE,
        "a",
        "a#{TEXT}b",
        {
          a: [1, 2],
          b: { a: 1 },
          **HASH
        },
        (ONE..TEXT.size),
        /a#{TEXT}/,
        [*LIST,
         ONE],
        :"a#{TEXT}".size,
        -> { ONE }
      ]
    end
    def self.operators
      ONE.itself
      a = TEXT +
          TEXT
      b = LIST +
          LIST
      c = BIG *
          BIG
      d = TEXT =~
          /b/
      e = 1.5e200 * 1.0e90
      a << TEXT
      a[0, 2]
      b[0, 1]
      b << [e]
      b.hash
      c.to_s
      [d, $~]
    end
    def self.calls
      ONE.itself
      SUB.up(1,
             2)
      SUB.missing(1)
      SUB.named(a: "a")
      keywords(a: 1,
               **HASH)
      optional(1)
      yielding do |x, *y|
        [x, y]
      end
      with_block do
        "block"
      end
      SUB.send(:up,
               *LIST)
      SUB.then do |x|
        [x]
      end
      [SUB.method(:up), proc { ONE }]
    end
    def self.constructors
      ONE.itself
      Object.new
      Plain.new(
        "value"
      )
      Wide.new
      PAIR.new(1,
               [2])
      Array.new(2) do |i|
        "e"
      end
      String.new
      Class.new
      Range.new(1,
                2)
      begin
        raise ArgumentError,
              "message"
      rescue ArgumentError
        ["rescued"]
      end
    end
    def self.loops
      ONE.itself
      LIST.each do |x|
        [x]
      end
      LIST.map do |x|
        x.to_s.then do |y|
          [x, y]
        end
      end
      HASH.each do |key, value|
        [key, value]
      end
      2.times do |i|
        [i]
      end
      1.step(3) do |i|
        "step"
      end
      LIST.each_slice(1) do |slice|
        slice.each do |x|
          ["inner"]
        end
      end
      LIST.each_with_index
          .map do |x, i|
        [x, i]
      end
      i = 0
      while (i += 1) < 3
        [i]
      end
      *a, b = LIST
      [a, b].first.tap do |x|
        x += [3]
      end
    end
    def self.deep(left)
      ONE.itself
      if left.zero?
        literals
      elsif left.odd?
        [left].each do |x|
          deep(left - 1)
        end
      else
        deep(left - 1)
      end
    end
    def self.drive(turns)
      i = 0
      while i < turns
        literals
        operators
        calls
        constructors
        loops
        deep(5)
        i += 1
      end
    end
  RUBY

  # Allocations while code is compiled, and the VM's own inline caches, are less than one in this many turns.
  TURNS = 100

  # Both compilers' counters of compiled instructions.
  WORK = %w[yjit_insns_count zjit_insn_count].freeze
  INVALIDATIONS = %w[invalidation_count invalidate_everything].freeze
  COMPILED = %w[compiled_iseq_count compiled_iseq_entry].freeze
end

RSpec.describe MemprofilerPprof::Collector, "compiled code" do
  let(:program) { <<~RUBY }
    eval(#{Jit::PROGRAM.inspect}, binding, "case.rb")
    drive(#{Jit::TURNS})
    $stdout.binmode.write(new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000)
      .profile { drive(#{Jit::TURNS}) }.pprof_data)
    compiler = %w[YJIT ZJIT].map { |name| RubyVM.const_get(name) rescue nil }.compact.find(&:enabled?)
    stats = compiler && (compiler.respond_to?(:stats) ? compiler.stats : compiler.runtime_stats)
    $stderr.print((stats || {}).fetch(:compiled_iseq_count, compiler ? 1000 : 0))
  RUBY

  # What the program does with a collector running, without one, and with a TracePoint, which is known to send it back
  # to the interpreter.
  let(:comparison) { <<~RUBY }
    require "json"
    eval(#{Jit::PROGRAM.inspect}, binding, "case.rb")
    compiler = RubyVM.const_get(ARGV[0])
    stats = -> { compiler.respond_to?(:stats) ? compiler.stats : compiler.runtime_stats }
    spent = lambda do |&block|
      before = stats.call
      block.call
      stats.call.to_h { |key, value| [key, value.is_a?(Integer) ? value - before[key].to_i : 0] }
    end
    drive(1000)
    # Calls everything for the first time.
    new_collector(sample_rate: 1.0).profile { drive(10) }
    3.times { spent.call { drive(10) } }

    collector = new_collector(sample_rate: 1.0)
    alone = spent.call { drive(500) }
    profiled = spent.call do
      collector.start
      drive(250)
      collector.flush
      drive(250)
      collector.stop
    end
    after = spent.call { drive(500) }
    collector.flush
    traced = spent.call { TracePoint.new(:line) { nil }.enable { drive(500) } }
    print JSON.generate(alone: alone, profiled: profiled, after: after, traced: traced)
  RUBY

  # Ruby code called from inside this program, innermost first, and what was allocated there: [class, frames] => how
  # often per turn. A C function is at its caller's place, and may be called with or without a frame.
  def reported(profile)
    counts = profile.samples.each_with_object(Hash.new(0)) do |sample, sums|
      next if sample.labels["class"].match?(/\A\((?!anonymous)/)

      frames = sample.frames.take_while { |frame| frame.name != "<main>" }.reverse
                     .chunk_while { |one, other| [one.file, one.line] == [other.file, other.line] }.map(&:first)
      places = frames.reverse.map { |frame| "#{frame.name}:#{frame.line}" }
      sums[[sample.labels["class"], places]] += sample[:allocations]
    end
    counts.transform_values { |count| count.fdiv(Jit::TURNS).round }.reject { |_, count| count.zero? }
  end

  def decoded(outcome)
    expect(outcome).to be_success, outcome.to_s
    Pprof.decode(outcome.stdout.b)
  end

  Jit::COMPILERS.each do |name, options|
    context "by #{name}" do
      before(:context) { @available = run_ruby("exit(RubyVM::#{name}.enabled?)", options: options[:on]).success? }
      before { skip "this Ruby has no #{name}" unless @available }

      it "has the same lines and names as interpreted code" do
        interpreted = decoded(run_ruby(program))
        outcome = run_ruby(program, options: options[:on])
        compiled = decoded(outcome)
        expect(outcome.stderr.to_i).to be > 15
        expect(reported(compiled)).to eq(reported(interpreted))
        expect(reported(compiled).size).to be > 80
      end

      it "lets the frame walker pass its self-test, too" do
        expect(decoded(run_ruby(program, options: options[:on])).comments).to include("bt_method=cfp")
      end

      it "stays compiled while a collector runs" do
        outcome = run_ruby(comparison, options: options[:counting], args: [name])
        expect(outcome).to be_success, outcome.to_s
        counts = JSON.parse(outcome.stdout)
        work = Jit::WORK.find { |key| counts["alone"].key?(key) }
        skip "#{name} does not count its work on this Ruby" unless work

        # Within 0.1 %: the calls of the collector's own methods.
        done = counts.transform_values { |values| values[work] }
        expect([done["profiled"], done["after"]]).to all(be_within(done["alone"] / 1000).of(done["alone"]))
        expect(done["traced"]).to be < done["alone"] / 2
        [*Jit::INVALIDATIONS, *Jit::COMPILED].each do |key|
          expect([key, *counts.values_at("profiled", "after").map { |values| values.fetch(key, 0) }]).to eq([key, 0, 0])
        end
      end
    end
  end
end
