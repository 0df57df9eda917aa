# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing::Measurement, :liveness, :moving do
  include_context "with the testing engine"

  before { stub_const("Kept", Class.new) }

  # [objects allocated, objects retained]
  def counts(type = nil, **options, &)
    measurement = described_class.take(**options, &)
    selection = MemprofilerPprof::Testing::Selection.new(type)
    { allocate: :allocations, retain: :retained_objects }.map do |verb, value|
      selection.of(measurement.samples(verb)).sum { |sample| sample.values.fetch(value) }
    end
  end

  it "counts nothing of its own" do
    expect(counts { 1 }).to eq([0, 0])
  end

  it "counts what is allocated and what is retained, exactly" do
    list = []
    expect(counts { 1234.times { Kept.new } && 567.times { list << Kept.new } }).to eq([1801, 567])
  end

  it "samples always, whatever options there are" do
    MemprofilerPprof::Testing.collector_options = { sampling: :windows }
    expect(described_class.collector.sampling).to eq(:always)
  end

  it "counts what is allocated, whatever options there are" do
    MemprofilerPprof::Testing.collector_options = { track_allocations: false }
    expect(counts { Kept.new }).to eq([1, 0])
  end

  it "does not count the block's value" do
    expect(counts { [Kept.new] }).to eq([2, 0])
  end

  describe "is not misled by stack remains of" do
    # References that C functions leave there: each of these blocks seems to retain something if it is just called.
    {
      "Marshal" => -> { Marshal.load(Marshal.dump(Kept.new)) },
      "a NoMethodError" => lambda do
        Kept.new.missing
      rescue NoMethodError => e
        e.receiver
      end,
      "a Hash" => -> { Array.new(20) { Kept.new }.to_h { |kept| [kept, 1] }.key?(Kept.new) },
      "a suspended Fiber" => -> { Fiber.new { Fiber.yield Kept.new }.resume },
      "an Enumerator" => -> { [Kept.new].each.next }
    }.each do |name, code|
      it name do
        expect(Array.new(5) { counts(Kept, &code).last }).to all(eq(0))
      end
    end
  end

  it "is not misled by what a Fiber left in an earlier measurement" do
    counts { Fiber.new { Fiber.yield }.resume }
    expect(counts(Kept) { Kept.new }).to eq([1, 0])
  end

  it "does not count a Fiber that is suspended and dropped" do
    expect(counts { Fiber.new { Fiber.yield }.resume }.last).to eq(0)
  end

  it "does not count a regexp match, and leaves $~ as it was" do
    "before" =~ /f/
    expect(counts { "during" =~ /r/ }.last).to eq(0)
    expect(Regexp.last_match.pre_match).to eq("be")
  end

  it "takes a Symbol or a Method as a block" do
    expect(counts(&method(:srand)).last).to eq(0)
  end

  it "calls the block once, after the calls for warming up" do
    calls = []
    counts(warm_up: 2) { calls << calls.size }
    expect(calls).to eq([0, 1, 2])
  end

  it "checks what is alive after the cleanup" do
    list = []
    expect(counts(cleanup: -> { list.clear }) { list << Kept.new }).to eq([1, 0])
  end

  it "waits for objects that the finalizers of others release" do
    expect(counts(Kept) do
      kept = Kept.new
      ObjectSpace.define_finalizer(+"", ->(_) { kept })
    end).to eq([1, 0])
  end

  it "measures inside another measurement" do
    inner = nil
    outer = counts(Kept) { inner = counts(Kept) { Kept.new } }
    expect([outer, inner]).to eq([[1, 0], [1, 0]])
  end

  it "says why a collector could not start" do
    let_no_collector_start("not here")
    expect { counts { 1 } }.to raise_error(MemprofilerPprof::RactorError, "not here")
  end

  it "raises if its collector was stopped" do
    expect { counts { MemprofilerPprof.collectors.each(&:stop) } }
      .to raise_error(MemprofilerPprof::Error, "the objects cannot be counted: their collector was stopped meanwhile")
  end

  it "raises where nothing is sampled" do
    expect { MemprofilerPprof.without_profiling { counts { 1 } } }
      .to raise_error(MemprofilerPprof::Error, "the objects cannot be counted: without_profiling is in force")
  end

  it "leaves no collector behind, even if the block raises" do
    expect { counts { raise "no" } }.to raise_error("no")
    expect(MemprofilerPprof.collectors).to eq([])
  end
end
