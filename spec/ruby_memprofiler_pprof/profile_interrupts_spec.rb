# frozen_string_literal: true

require "timeout"
require_relative "../support/pprof/crafted"

# Long work on profiles ends when something interrupts its thread. How soon is measured by its CPU time, which other
# load on the machine does not lengthen.
RSpec.describe MemprofilerPprof::Profile do
  def cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end

  def cpu_of
    before = cpu
    yield
    cpu - before
  end

  let(:bytes) { Pprof::Crafted.samples(5_000_000) }

  it "can be ended by Timeout before it is done" do
    whole = cpu_of { described_class.load(bytes) }
    spent = cpu_of do
      expect { Timeout.timeout(whole / 10) { described_class.load(bytes) } }.to raise_error(Timeout::Error)
    end
    expect(spent).to be < whole / 2
  end

  it "can be ended by Thread#kill before it is done" do
    whole = cpu_of { described_class.load(bytes) }
    spent = cpu_of do
      thread = Thread.new { described_class.load(bytes) }
      sleep(whole / 10)
      expect(thread.kill.join.value).to be_nil
    end
    expect(spent).to be < whole / 2
  end

  # Runs in a separate process, whose main thread gets the signals; `whole` is the CPU time of the complete operation.
  def signalled(code)
    prelude = <<~RUBY
      require "#{File.expand_path("../support/pprof/crafted", __dir__)}"
      def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      profile = MemprofilerPprof::Profile.load(Pprof::Crafted.labelled(300_000))
      base = profile.tag(a: 1)
      work = -> { profile.diff(base) }
      before = cpu
      expected = work.call
      whole = cpu - before
      signal = lambda do |name, from, sent = []|
        sleep 0.001 until cpu > from
        sent << cpu
        Process.kill(name, Process.pid)
      end
    RUBY
    outcome = run_ruby(prelude + code)
    expect(outcome).to be_success, outcome.to_s
    outcome.stdout
  end

  # How much of the work is done between a signal and its handling, which `code` waits for: the least of three times.
  # The signal is sent after a tenth of the work. If other programs delay that by more, the work is done once more.
  def share_until_handled(name, code)
    Float(signalled(<<~RUBY))
      shares = 30.times.lazy.filter_map do
        start = cpu
        sent = []
        # Ruby 3.1 has no separate thread for signals: a waiting one handles them.
        sender = Thread.new { signal.call(:#{name}, start + (whole / 10), sent) && sleep }
        #{code}
        sender.kill
        (handled - sent[0]) / whole if sent[0] - start < whole / 4
      end.first(3)
      puts shares.min || "never signalled in time"
    RUBY
  end

  it "can be ended by SIGINT before it is done" do
    share = share_until_handled(:INT, <<~RUBY)
      handled = begin
        work.call && sleep
      rescue Interrupt
        cpu
      end
    RUBY
    expect(share).to be < 0.25
  end

  it "runs signal handlers before it is done, and then continues" do
    share = share_until_handled(:USR1, <<~RUBY)
      handled = nil
      trap(:USR1) { handled = cpu }
      work.call == expected or abort "another result"
      sleep 0.001 until handled
    RUBY
    expect(share).to be < 0.25
  end

  it "adds each profile once to a sum, however often it is interrupted" do
    output = signalled(<<~RUBY)
      handled = 0
      trap(:USR1) { handled += 1 }
      sum = -> { profile.merge(profile, profile) }
      plain = sum.call
      done = false
      signals = Thread.new { signal.call(:USR1, cpu + (whole / 20)) until done }
      puts sum.call == plain
      done = true
      signals.kill
      puts handled > 2
    RUBY
    expect(output).to eq("true\ntrue\n")
  end

  describe "the expanded size of a profile" do
    it "is bounded, and the error names the bound" do
      bytes = Pprof::Crafted.inlined(2_000, 2_000)
      most = 131_072 + (16 * bytes.bytesize)
      error = /: its #{bytes.bytesize} bytes expand to 4000000 frames with inlined functions, at most #{most} are/
      expect { described_class.load(bytes) }.to raise_error(MemprofilerPprof::ProfileError, error)
    end

    it "leaves room for inlined functions" do
      profile = described_class.load(Pprof::Crafted.inlined(200, 500))
      expect([profile.tree, profile.samples.first.stack.size]).to match([have_attributes(name: "total"), 100_000])
    end
  end

  it "merges comments in time proportional to their number" do
    times = [2_000, 32_000].map do |count|
      mine, others = %w[a b].map do |word|
        described_class.load(Pprof::Crafted.comments(Array.new(count) { |number| "#{word} #{number}" }))
      end
      # A garbage collection may fall into one of them.
      Array.new(5) { cpu_of { expect(mine.merge(others).comments.size).to eq((2 * count) + 1) } }.min
    end
    # 16 times as many comments; if each were compared with all others, it would take 256 times as long.
    expect(times[1] / times[0]).to be < 64
  end
end
