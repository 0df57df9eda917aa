# frozen_string_literal: true

RSpec.describe MemprofilerPprof::BackgroundThread do
  it "has a name, and is marked for Puma as fork-safe" do
    thread = described_class.start("worker") { :done }
    expect(thread.value).to eq(:done)
    expect(thread).to have_attributes(name: "worker")
    expect(thread.thread_variable_get(:fork_safe)).to be(true)
  end

  it "is not sampled, either when it starts or while it works" do
    stub_const("Marker", Class.new)
    profile = profile_of { described_class.start("worker") { Array.new(10) { Marker.new } }.join }
    expect(profile.by_class(:allocations).slice("Thread", "Marker")).to eq({})
  end
end
