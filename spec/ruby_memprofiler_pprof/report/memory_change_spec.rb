# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe "MemprofilerPprof::Report::MemoryChange" do
  def sentence(old, new)
    MemprofilerPprof::Report.const_get(:MemoryChange).new(old, new).sentence
  end

  def memory(...)
    RecordedMemory.memory(...)
  end

  it "names the parts that have changed, the most changed first" do
    expect(sentence(memory, memory({ free_slots: 52, allocator_free: 3 })))
      .to eq("Resident memory since the old profile: +5.00 MiB (free slots +20.0 MiB, free in malloc -15.0 MiB).")
  end

  it "names no part whose change is within the error of its estimates" do
    expect(sentence(memory, memory({ object_slots: 24.5 }))).to eq("Resident memory since the old profile: +3.00 MiB.")
    expect(sentence(memory, memory({ object_slots: 25.5 }))).to end_with("+4.00 MiB (objects +4.00 MiB).")
  end

  it "takes what is left as uncertain as what was subtracted" do
    expect(sentence(memory, memory({ vm_memory: 32 }))).to end_with(": +3.00 MiB.")
    expect(sentence(memory, memory({ vm_memory: 33 }))).to end_with("(VM and C libraries +4.00 MiB).")
  end

  it "names no part that is small beside the resident memory" do
    expect(sentence(memory, memory({ free_slots: 33 }))).to end_with(": +1.00 MiB.")
  end

  it "names no part if the profiles know other lines" do
    expect(sentence(memory, memory({ allocator_free: nil }))).to end_with(": -18.0 MiB.")
  end

  it "says nothing if a profile does not say where the memory was" do
    expect([sentence(nil, memory), sentence(memory, nil), sentence(memory(rss_bytes: nil), memory)]).to all(be_nil)
  end
end
