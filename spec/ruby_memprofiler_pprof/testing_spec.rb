# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing, :liveness do
  include_context "with the testing engine"

  it "saves profiles by a pattern" do
    described_class.profile_pattern = File.join(directory, "%{pid}.pprof")
    path = described_class.save(new_collector(sample_rate: 0).profile { 1 })
    expect(path).to eq(File.join(directory, "#{Process.pid}.pprof"))
    expect(Pprof.decode(File.binread(path)).samples).to eq([])
  end

  it "never overwrites a profile" do
    profile = new_collector.profile { 1 }
    expect(Array.new(2) { File.basename(described_class.save(profile)) }).to eq(%w[saved.pprof saved_x1.pprof])
  end

  it "numbers profiles" do
    described_class.profile_pattern = File.join(directory, "%{index}.pprof")
    profile = new_collector.profile { 1 }
    first, second = Array.new(2) { Integer(File.basename(described_class.save(profile), ".pprof")) }
    expect(second).to eq(first + 1)
  end

  it "refuses a wrong pattern, and keeps the one it has" do
    expect { described_class.profile_pattern = "%{what}" }.to raise_error(ArgumentError, /unknown key "what"/)
    expect(described_class.profile_pattern).to end_with("saved.pprof")
  end

  it "makes collectors with further options" do
    described_class.collector_options = { max_frames: 1 }
    measurement = described_class::Measurement.take { [+"x"].map(&:dup) }
    names = measurement.samples(:allocate).flat_map(&:frames).map(&:name)
    expect(names).to include("(truncated)")
  end

  it "refuses wrong options" do
    expect { described_class.collector_options = { max_frames: 0 } }.to raise_error(ArgumentError, /max_frames/)
  end
end
