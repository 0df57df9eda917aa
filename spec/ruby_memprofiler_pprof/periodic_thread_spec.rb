# frozen_string_literal: true

RSpec.describe MemprofilerPprof::PeriodicThread do
  let(:clock) { ManualClock.new }
  # When work started.
  let(:times) { [] }
  let(:threads) { [] }

  after { threads.each(&:stop) }

  # @yield the rest of the work
  def start(interval, &work)
    thread = described_class.new(interval, name: "periodic", clock: clock) do
      times << clock.now
      work&.call
    end
    threads << thread.tap(&:start)
    thread
  end

  # Moves the clock by one second at a time.
  def run_for(seconds)
    seconds.times { clock.advance(1) }
  end

  it "works once per interval, for the first time after one" do
    start(3)
    run_for(10)
    expect(times).to eq([3, 6, 9])
  end

  it "waits until work is due, and no longer" do
    start(3)
    clock.advance(1)
    expect(clock.waits.uniq).to eq([3, 2])
  end

  it "waits for at most an hour at a time" do
    start(1e300)
    clock.settle
    expect(clock.waits.uniq).to eq([3600])
  end

  it "works for the first time at a random moment in a forked child, but not before half of the interval" do
    thread = start(100)
    firsts = Array.new(10) do
      thread.after_fork
      clock.settle
      clock.waits.last
    end
    expect(firsts).to all(be_between(50, 100))
    expect(firsts.uniq.size).to be > 1
  end

  it "uses the real clock unless it is given another" do
    done = Queue.new
    thread = described_class.new(0.02, name: "periodic") { done << Process.clock_gettime(Process::CLOCK_MONOTONIC) }
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    threads << thread.tap(&:start)
    expect([done.pop - began, done.pop - began]).to match([be >= 0.02, be >= 0.04])
  end

  it "counts the interval from the beginning of work" do
    start(10) { clock.pass(4) }
    run_for(20)
    expect(times).to eq([10, 20])
  end

  it "rests as long as the work took, if that was more than half of the interval" do
    start(10) { clock.pass(times.size == 1 ? 7 : 0) }
    run_for(30)
    expect(times).to eq([10, 24, 34])
  end

  it "works once if several intervals have passed" do
    start(10)
    clock.advance(35)
    run_for(10)
    expect(times).to eq([35, 45])
  end

  describe "#paused=" do
    it "skips the work" do
      start(3).paused = true
      run_for(10)
      expect(times).to be_empty
    end

    it "makes the thread wait as long as possible instead of polling" do
      start(3).paused = true
      clock.settle
      clock.waits.clear
      run_for(10)
      expect(clock.waits.uniq).to eq([3600])
    end

    it "catches up at its end on what fell due" do
      thread = start(3)
      thread.paused = true
      run_for(10)
      thread.paused = false
      wait_until { times.any? }
      run_for(4)
      expect(times).to eq([10, 13])
    end

    it "does nothing at its end that is not due" do
      thread = start(10)
      thread.paused = true
      run_for(3)
      thread.paused = false
      run_for(10)
      expect(times).to eq([10])
    end
  end

  describe "#work_soon" do
    it "works immediately, and again an interval later" do
      thread = start(10)
      run_for(3)
      thread.work_soon
      wait_until { times.any? }
      run_for(12)
      expect(times).to eq([3, 13])
    end

    it "works during a pause" do
      thread = start(10)
      thread.paused = true
      thread.work_soon
      run_for(12)
      expect(times).to eq([0])
    end

    it "works again if it was called during work" do
      thread = start(10) { threads.first.work_soon if times.size == 1 }
      thread.work_soon
      clock.settle
      expect(times).to eq([0, 0])
    end

    it "does nothing if there is no thread" do
      thread = start(10)
      thread.stop
      thread.work_soon
      thread.start
      clock.settle
      expect(times).to be_empty
    end
  end

  describe "#stop" do
    it "returns whether the thread has ended" do
      thread = start(10)
      expect([thread.stop, thread.stop]).to eq(%i[ended none])
    end

    it "waits up to its timeout" do
      gate = Queue.new
      thread = start(10) { gate.pop }
      thread.work_soon
      wait_until { gate.num_waiting == 1 }
      expect(thread.stop(0.01)).to eq(:hangs)
    ensure
      gate.close
    end

    it "can be followed by another start" do
      thread = start(10)
      run_for(7)
      thread.stop
      thread.start
      run_for(12)
      expect(times).to eq([17])
    end
  end
end
