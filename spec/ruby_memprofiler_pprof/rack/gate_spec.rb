# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack"

RSpec.describe MemprofilerPprof::Rack::Gate do
  subject(:gate) { described_class.new(1) }

  # Runs the block while another thread is inside.
  def while_occupied
    entered = Queue.new
    leave = Queue.new
    thread = Thread.new { gate.enter { entered.push(true) && leave.pop } }
    entered.pop
    yield
  ensure
    leave.push(true)
    thread.join
  end

  # The block's value in a forked child.
  def in_child
    IO.popen("-") { |pipe| pipe ? pipe.read : print(yield) }
  end

  it "admits no more than its limit" do
    while_occupied { expect(gate.enter { "inside" }).to be_nil }
  end

  it "is open again when someone has left, even by raising" do
    expect { gate.enter { raise "no" } }.to raise_error("no")
    expect(gate.enter { "inside" }).to eq("inside")
  end

  # Enters, and has an exception come from outside, such as a timeout's, when code of the gate returns for the nth time,
  # which is where the VM looks for them.
  # @return [Boolean] whether there was an nth time
  def interrupted?(number)
    file = described_class.instance_method(:enter).source_location.first
    count = 0
    trace = TracePoint.new(:return, :b_return, :c_return) do |point|
      Thread.current.raise("late") if point.path == file && (count += 1) == number
    end
    trace.enable { gate.enter { 1 } }
    false
  rescue RuntimeError
    true
  end

  it "is open again when someone was interrupted at any moment" do
    number = 0
    while interrupted?(number += 1)
      # While this thread is alive.
      expect(Thread.new { gate.enter { "inside" } }.value).to eq("inside"), "interrupted at return #{number}"
    end
    expect(number).to be > 5
  end

  it "is open in a child that was forked while another thread was inside" do
    while_occupied { expect(in_child { gate.enter { "inside" } }).to eq("inside") }
  end

  it "still counts the thread that forked" do
    expect(gate.enter { in_child { [gate.enter { "inside" }].inspect } }).to eq("[nil]")
  end
end
