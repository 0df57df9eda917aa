# frozen_string_literal: true

RSpec.describe MemprofilerPprof, ".without_profiling" do
  before { stub_const("Marker", Class.new) }

  def markers(&)
    profile_of(&).by_class(:allocations).fetch("Marker", 0)
  end

  it "returns the block's value" do
    expect(described_class.without_profiling { 42 }).to eq(42)
  end

  it "passes nothing to the block" do
    expect(described_class.without_profiling(&-> { :nothing })).to eq(:nothing)
  end

  it "keeps what the block allocates out of profiles" do
    expect(markers { described_class.without_profiling { Array.new(10) { Marker.new } } }).to eq(0)
  end

  it "ends with the block, also when that raises" do
    count = markers do
      described_class.without_profiling { raise ArgumentError }
    rescue ArgumentError
      Marker.new
    end
    expect(count).to eq(1)
  end

  it "can be nested" do
    count = markers do
      described_class.without_profiling do
        described_class.without_profiling { Marker.new }
        Marker.new
      end
    end
    expect(count).to eq(0)
  end

  it "leaves other threads alone" do
    count = markers do
      described_class.without_profiling { Thread.new { 3.times { Marker.new } }.join }
    end
    expect(count).to eq(3)
  end
end
