# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing::LeakCheck, :liveness, :moving do
  include_context "with the testing engine"

  let(:list) { [] }
  let(:clocks) { { Process::CLOCK_THREAD_CPUTIME_ID => 0.0, Process::CLOCK_MONOTONIC => 0.0 } }

  before do
    stub_const("Kept", Class.new)
    # Time passes only when a block says so.
    allow(Process).to receive(:clock_gettime) { |clock| clocks.fetch(clock) }
    allow(MemprofilerPprof::Testing::Cost).to receive(:voluntary_switches)
  end

  def take(cpu:, wall: cpu)
    clocks[Process::CLOCK_THREAD_CPUTIME_ID] += cpu
    clocks[Process::CLOCK_MONOTONIC] += wall
  end

  def leak?(**options, &)
    described_class.new(**options).leak?(&)
  end

  # As if the block were slow.
  def few_calls(**options)
    leak?(**options) do
      take(cpu: 1)
      yield
    end
  end

  # Adds entries, and removes the oldest beyond this number.
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
      expect(few_calls { Array.new(100) { +"x" } && (list << Kept.new) }).to be(true)
    end

    it "what another thread leaves behind" do
      expect(few_calls { Thread.new { list << Kept.new }.join }).to be(true)
    end

    # As compiled code does.
    it "what a C function leaves that has no frame any more" do
      calls = 0
      expect(few_calls { list << ((calls += 1) < 30 ? "x".dup : "x#{calls}") }).to be(true)
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
      last = nil
      random = Random.new(1)
      found = Array.new(6) do
        few_calls do
          last = Array.new(random.rand(1000)) { +"x" }
          list << Kept.new
        end
      end
      expect(found).to all(be(true))
    end
  end

  describe "raises no false alarm at" do
    it "what dies" do
      expect(leak? { Array.new(10) { Kept.new } }).to be(false)
    end

    it "the last value, however large" do
      last = nil
      expect(few_calls { last = Array.new(1000) { +"x" } }).to be(false)
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

  describe "calls the block" do
    def calls(**options)
      calls = 0
      leak?(**options) do
        calls += 1
        yield calls
      end
      calls
    end

    # Two more come before each check of what is alive.
    it "as often on a busy machine as on an idle one", :aggregate_failures do
      [1, 7].each do |times|
        number = calls do
          take(cpu: 0.001, wall: 0.001 * times)
          list << Kept.new
        end
        expect(number).to eq(3 + 200 + (80 + 160 + 320 + 640 + 1280) + (6 * 2))
      end
    end

    it "a few times if it waits" do
      number = calls do
        take(cpu: 0.000_01, wall: 0.02)
        list << Kept.new
      end
      expect(number).to eq(3 + 20 + (8 + 16 + 32) + (4 * 2))
    end

    it "no more once it has cost too much" do
      number = calls do |call|
        take(cpu: call < 800 ? 0.000_1 : 0.01)
        list << Kept.new
      end
      expect(number).to eq(3 + 200 + (80 + 160 + 320 + 640 + 1280) + (6 * 2))
    end

    it "no more once the suspicion has been cleared" do
      number = calls { |call| call < 280 && (list << Kept.new) }
      expect(number).to eq(3 + 200 + (80 + 160) + (3 * 2))
    end
  end

  describe "tolerating:" do
    it "lets that many objects per call stay" do
      found = [2, 1.9].map { |tolerated| few_calls(tolerating: tolerated) { 2.times { list << Kept.new } } }
      expect(found).to eq([false, true])
    end
  end

  describe "of:" do
    it "only considers objects of a class" do
      found = [Kept, Hash].map { |type| few_calls(of: type) { list << Kept.new << +"" } }
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
      expect { leak?(warm_up: 0) { 1 } }.to raise_error(ArgumentError, "warm_up must be an Integer from 1, got 0")
      wrong = "iterations must be an Integer from 20, got"
      expect { leak?(iterations: 19) { 1 } }.to raise_error(ArgumentError, "#{wrong} 19")
      expect { leak?(iterations: 20.5) { 1 } }.to raise_error(TypeError, "#{wrong} 20.5")
      expect { leak?(tolerating: -1) { 1 } }.to raise_error(ArgumentError, /\Atolerating must be a finite number/)
    end
  end

  it "says why a collector could not start" do
    let_no_collector_start("not here")
    expect { leak? { 1 } }.to raise_error(MemprofilerPprof::RactorError, "not here")
  end

  it "leaves no collector behind, even if the block raises" do
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
