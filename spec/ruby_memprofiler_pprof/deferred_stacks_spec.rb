# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Collector, "with bt_method: :backtrace_locations", :liveness, :moving, :threads do
  before { stub_const("Marker", Class.new) }

  it "has functions, files and lines as in Ruby's backtraces" do
    profile = profile_of(bt_method: :backtrace_locations) { 10.times { Marker.new } }
    frames = profile.samples.find { |sample| sample.labels["class"] == "Marker" }.frames
    expect(frames.map { |frame| [frame.file, frame.line] }).to include([__FILE__, __LINE__ - 2])
    expect(frames.map(&:name)).to include(/block.* in /)
  end

  # What the VM allocated to give up the GVL requested the next stack, so that it never did.
  it "lets work be done without the GVL if every object is sampled" do
    outcome = run_ruby(<<~RUBY)
      require "stringio"
      profile = new_collector(sample_rate: 1.0, bt_method: :backtrace_locations).start.flush
      print MemprofilerPprof::Profile.load(StringIO.new(profile.pprof_data)).class
    RUBY
    expect(outcome.stdout).to eq("MemprofilerPprof::Profile"), outcome.to_s
  end

  # @return [Thread] a thread in the middle of allocating
  def start_allocating
    begun = Queue.new
    thread = Thread.new do
      begun << true
      loop { Marker.new }
    end
    thread.report_on_exception = false
    begun.pop
    thread
  end

  # A bug would lose one to three of ten threads: each has the GVL for 100 ms.
  it "loses no Thread#kill", :slow do
    new_collector(sample_rate: 1.0, bt_method: :backtrace_locations, thread_names: true).start
    outcomes = Array.new(10) { start_allocating.kill.join(60) }
    expect(outcomes).to all(be_a(Thread))
  end

  it "loses no Thread#raise", :slow do
    error = Class.new(StandardError)
    new_collector(sample_rate: 1.0, bt_method: :backtrace_locations, thread_names: true).start
    outcomes = Array.new(10) do
      thread = start_allocating
      thread.raise(error)
      expect { raise "still alive" unless thread.join(60) }.to raise_error(error)
    end
    expect(outcomes.size).to eq(10)
  end
end
