# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Collector, "with bt_method: :backtrace_locations" do
  before { stub_const("Marker", Class.new) }

  it "tells functions, files and lines as Ruby's backtraces do" do
    profile = profile_of(bt_method: :backtrace_locations) { 10.times { Marker.new } }
    frames = profile.samples.find { |sample| sample.labels["class"] == "Marker" }.frames
    expect(frames.map { |frame| [frame.file, frame.line] }).to include([__FILE__, __LINE__ - 2])
    expect(frames.map(&:name)).to include(/block.* in /)
  end

  it "loses no Thread#kill" do
    new_collector(sample_rate: 1.0, bt_method: :backtrace_locations, thread_names: true).start
    outcomes = Array.new(10) do
      thread = Thread.new { loop { Marker.new } }
      sleep 0.002
      thread.kill.join(5)
    end
    expect(outcomes).to all(be_a(Thread))
  end

  it "loses no Thread#raise" do
    error = Class.new(StandardError)
    new_collector(sample_rate: 1.0, bt_method: :backtrace_locations, thread_names: true).start
    outcomes = Array.new(10) do
      thread = Thread.new { loop { Marker.new } }
      thread.report_on_exception = false
      sleep 0.002
      thread.raise(error)
      expect { raise "still alive" unless thread.join(5) }.to raise_error(error)
    end
    expect(outcomes.size).to eq(10)
  end
end
