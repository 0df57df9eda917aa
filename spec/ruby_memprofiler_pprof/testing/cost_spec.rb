# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing::Cost do
  # After calls that took these times, in pairs of CPU time and wall time.
  # @param switches [Integer, nil] how often each call gave up its processor voluntarily; nil if unknown
  def cost_of(*calls, at_once: 1, switches: nil)
    sum = switches && 0
    allow(described_class).to receive(:voluntary_switches) { sum }
    clocks = { Process::CLOCK_THREAD_CPUTIME_ID => 0.0, Process::CLOCK_MONOTONIC => 1000.0 }
    allow(Process).to receive(:clock_gettime) { |clock| clocks.fetch(clock) }
    calls.each_with_object(described_class.new) do |times, cost|
      cost.measure(at_once) do
        sum += switches * at_once if switches
        clocks.transform_values!.with_index { |time, index| time + (times[index] * at_once) }
      end
    end
  end

  it "plans the number of calls and batches" do
    costs = [0, 0.000_24, 0.000_26, 0.001_9, 0.002_1, 0.015, 0.017, 0.127, 0.129, 9]
    found = costs.map { |time| cost_of([time, time]).then { |cost| [cost.first_calls, cost.longer_batches] } }
    expect(found).to eq([[200, 8], [200, 5], [60, 4], [20, 3], [20, 2]].flat_map { |numbers| [numbers] * 2 })
  end

  it "is the mean cost of a call" do
    expect(cost_of([0.001, 0.001], at_once: 40).longer_batches).to eq(5)
  end

  it "is CPU time unless a call took much longer" do
    expect([0.001, 0.007].map { |wall| cost_of([0.001, wall]).longer_batches }).to eq([5, 5])
  end

  it "is wall time if all calls wait" do
    expect([0.0, 0.001].map { |cpu| cost_of([cpu, 0.02], [cpu, 0.03]).first_calls }).to eq([20, 20])
  end

  it "is CPU time, however long calls take, unless they gave up their processor voluntarily" do
    found = [0, 1].map { |switches| cost_of([0.001, 0.02], [0.001, 0.2], switches: switches).first_calls }
    expect(found).to eq([200, 20])
  end

  it "counts only waits that the system reports", if: File.exist?("/proc/thread-self/status") do
    waits = [-> { sleep 0.001 }, -> { 100_000.times { nil } }].map do |code|
      before = described_class.voluntary_switches
      20.times { code.call }
      described_class.voluntary_switches - before
    end
    expect(waits).to match([be >= 20, be < 20])
  end

  it "is CPU time if only some calls took much longer, unless it was extreme" do
    expect([0.02, 0.1].map { |wall| cost_of([0.001, 0.001], [0.001, wall], [0.001, wall]).longer_batches })
      .to eq([5, 3])
  end

  it "uses the minimum" do
    expect(cost_of([0.02, 0.02], [0.000_1, 0.000_1], [1, 1]).first_calls).to eq(200)
  end

  it "uses the last two for further batches" do
    expect([cost_of([0, 0], [0.1, 0.1], [1, 1]), cost_of([0, 0], [1, 1], [1, 1])].map(&:longer_batches)).to eq([3, 2])
  end
end
