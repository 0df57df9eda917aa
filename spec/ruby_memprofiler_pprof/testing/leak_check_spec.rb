# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing::LeakCheck do
  include_context "with the testing engine"

  before { stub_const("Kept", Class.new) }

  let(:list) { [] }

  def leak?(**options, &)
    described_class.new(**options).leak?(&)
  end

  # Adds entries, and removes the oldest beyond a number of them.
  def cache(size)
    entries = {}
    number = 0
    lambda do
      entries[number += 1] = "value #{number}"
      entries.shift if entries.size > size
    end
  end

  describe "finds" do
    it "one object per call" do
      expect(leak? { list << Kept.new }).to be(true)
    end

    it "one object per ten calls" do
      count = 0
      expect(leak? { (count += 1) % 10 == 0 && (list << Kept.new) }).to be(true)
    end

    it "one object per call among much garbage" do
      expect(leak?(iterations: 20) { Array.new(100) { +"x" } && (list << Kept.new) }).to be(true)
    end

    it "what another thread leaves behind" do
      expect(leak?(iterations: 20) { Thread.new { list << Kept.new }.join }).to be(true)
    end

    it "a leak beside a cache that fills up" do
      entries = cache(500)
      found = leak? do
        entries.call
        list << Kept.new
      end
      expect(found).to be(true)
    end

    it "a leak beside a last result whose size varies, in few calls" do
      # As if the block were slow.
      stub_const("#{described_class}::SECONDS", 0)
      last = nil
      random = Random.new(1)
      found = Array.new(20) do
        leak?(iterations: 20) do
          last = Array.new(random.rand(1000)) { +"x" }
          list << Kept.new
        end
      end
      expect(found).to all(be(true))
    end

    it "a leak in a slow block, in few calls" do
      calls = 0
      found = leak? do
        calls += 1
        sleep 0.02
        list << Kept.new
      end
      expect([found, calls]).to match([true, be < 100])
    end
  end

  describe "is not alarmed by" do
    it "what dies" do
      expect(leak? { Array.new(10) { Kept.new } }).to be(false)
    end

    it "the last value, however large" do
      last = nil
      expect(leak?(iterations: 20) { last = Array.new(1000) { +"x" } }).to be(false)
    end

    it "something built once, in the middle" do
      calls = 0
      table = nil
      expect(leak? { (calls += 1) > 100 && (table ||= Array.new(1000) { Kept.new }) }).to be(false)
    end

    it "a memo" do
      memo = {}
      expect(leak? { memo[rand(500)] ||= Kept.new }).to be(false)
    end

    it "a memo that is still filling up, slower and slower" do
      random = Random.new(1)
      memo = {}
      expect(leak? { memo[random.rand(8000)] ||= Kept.new }).to be(false)
    end

    it "a cache that replaces its entries at random" do
      random = Random.new(1)
      entries = []
      expect(leak? { entries[entries.size < 8000 ? entries.size : random.rand(8000)] = Kept.new }).to be(false)
    end

    [100, 2000].each do |size|
      it "a cache of #{size} that fills up" do
        expect(leak?(&cache(size))).to be(false)
      end
    end

    it "the replacement of older objects" do
      ring = Array.new(100_000) { Kept.new }
      index = -1
      expect(leak? { ring[index += 1] = Kept.new }).to be(false)
    end

    it "classes and methods that the block makes" do
      expect(leak? { Struct.new(:a).new(1).a }).to be(false)
    end

    it "symbols" do
      number = 0
      expect(leak? { :"a_symbol_#{number += 1}" }).to be(false)
    end
  end

  it "stops as soon as the suspicion is gone" do
    entries = []
    calls = 0
    leak? { (calls += 1) < 300 && (entries << Kept.new) }
    expect(calls).to be < 1500
  end

  describe "tolerating:" do
    it "lets that many objects per call stay" do
      found = [2, 1.9].map { |tolerated| leak?(tolerating: tolerated) { 2.times { list << Kept.new } } }
      expect(found).to eq([false, true])
    end
  end

  describe "of:" do
    it "looks at objects of a class only" do
      found = [Kept, Hash].map { |type| leak?(of: type, iterations: 20) { list << Kept.new << +"" } }
      expect(found).to eq([true, false])
    end
  end

  describe "warm_up: and iterations:" do
    it "say how often the block is called if it does not leak" do
      calls = 0
      leak?(warm_up: 7, iterations: 50) { calls += 1 }
      # Two more come last.
      expect(calls).to eq(7 + 50 + 2)
    end

    it "must be large enough", :aggregate_failures do
      expect { leak?(warm_up: 0) { 1 } }.to raise_error(ArgumentError, "warm_up must be at least 1, got 0")
      expect { leak?(iterations: 19) { 1 } }.to raise_error(ArgumentError, "iterations must be at least 20, got 19")
      expect { leak?(iterations: 20.5) { 1 } }.to raise_error(TypeError, "iterations must be an Integer, got 20.5")
      expect { leak?(tolerating: -1) { 1 } }.to raise_error(ArgumentError, /\Atolerating must be a finite number/)
    end
  end

  it "says why a collector could not start" do
    let_no_collector_start("not here")
    expect { leak? { 1 } }.to raise_error(MemprofilerPprof::RactorError, "not here")
  end

  it "leaves no collector behind, also if the block raises" do
    calls = 0
    expect { leak? { (calls += 1) > 30 && raise("no") } }.to raise_error("no")
    expect(MemprofilerPprof.collectors).to eq([])
  end

  it "raises if it could not count" do
    stub_const("MemprofilerPprof::Testing::Measurement::EXACT", { sample_rate: 1.0, max_heap_samples: 100 })
    expect { leak? { 100.times { list << Kept.new } } }
      .to raise_error(MemprofilerPprof::Error, "the objects cannot be counted: more than 100 objects at once")
  end
end
