# frozen_string_literal: true

RSpec.describe MemprofilerPprof::BackgroundThread do
  it "has a name, and is marked for Puma as fork-safe" do
    thread = described_class.start("worker") { :done }
    expect(thread.value).to eq(:done)
    expect(thread).to have_attributes(name: "worker")
    expect(thread.thread_variable_get(:fork_safe)).to be(true)
  end

  it "has ended, whatever ended it" do
    thread = described_class.start("worker") { raise "ended it" }
    thread.report_on_exception = false
    expect(described_class.ended?(thread, nil)).to be(true)
  end

  it "does not swallow what is raised in who waits, though it has ended" do
    thread = described_class.start("worker") { :done }.tap(&:join)
    allow(thread).to receive(:join).and_raise("a timeout")
    expect { described_class.ended?(thread, nil) }.to raise_error("a timeout")
  end

  it "can be killed though its starter masks interrupts" do
    gate = Queue.new
    goes_on = false
    thread = Thread.handle_interrupt(Object => :never) { described_class.start("worker") { goes_on = gate.pop } }
    thread.kill
    gate << true
    thread.join
    expect(goes_on).to be(false)
  end

  # Starts one from a thread in that group.
  def group_of_worker(group)
    gate = Queue.new
    thread = Thread.new { group.add(Thread.current) && described_class.start("worker") { gate.pop } }.value
    thread.group
  ensure
    gate << true
    thread&.join
  end

  it "belongs to no group of the program's" do
    expect(group_of_worker(ThreadGroup.new)).to be(ThreadGroup::Default)
  end

  it "stays in a group that no thread may leave" do
    group = ThreadGroup.new
    group.define_singleton_method(:add) { |thread| super(thread).enclose }
    expect(group_of_worker(group)).to be(group)
  end

  it "is not sampled, either when it starts or while it works" do
    stub_const("Marker", Class.new)
    profile = profile_of { described_class.start("worker") { Array.new(10) { Marker.new } }.join }
    expect(profile.by_class(:allocations).slice("Thread", "Marker")).to eq({})
  end
end
