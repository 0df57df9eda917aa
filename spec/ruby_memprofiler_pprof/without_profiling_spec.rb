# frozen_string_literal: true

RSpec.describe MemprofilerPprof, ".without_profiling", :liveness, :moving, :threads do
  before { stub_const("Marker", Class.new) }

  def markers(&)
    profile_of(&).by_class(:allocations).fetch("Marker", 0)
  end

  it "returns the block's value" do
    expect(described_class.without_profiling { 42 }).to eq(42)
  end

  it "is in force in the block, and nowhere else" do
    other = described_class.without_profiling { Thread.new { described_class.muted? }.value }
    expect([described_class.without_profiling { described_class.muted? }, other, described_class.muted?])
      .to eq([true, false, false])
  end

  it "passes nothing to the block" do
    expect(described_class.without_profiling(&-> { :nothing })).to eq(:nothing)
  end

  it "needs a block" do
    expect { described_class.without_profiling }.to raise_error(ArgumentError, "without_profiling needs a block")
  end

  it "keeps what the block allocates out of profiles" do
    expect(markers { described_class.without_profiling { Array.new(10) { Marker.new } } }).to eq(0)
  end

  it "ends with the block, even if that raises" do
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

  it "leaves fibers alone that the block creates" do
    count = markers do
      described_class.without_profiling { Fiber.new { 3.times { Marker.new } }.resume }
    end
    expect(count).to eq(3)
  end

  it "ends with a fiber that is abandoned inside it" do
    count = markers do
      60.times { Fiber.new { described_class.without_profiling { Fiber.yield } }.resume }
      GC.start
      # They reuse the addresses of the others.
      Array.new(1000) { Fiber.new { Marker.new && Fiber.yield }.tap(&:resume) }
    end
    expect(count).to eq(1000)
  end

  {
    "whose collector runs on" => ["collector.start", ""], "which starts its collector itself" => ["", "collector.start"]
  }.each do |name, (before, after)|
    it "does not affect new threads of a forked child #{name}, whichever threads were muted in the parent" do
      outcome = run_ruby(<<~RUBY, options: ["-r#{File.expand_path("../support/pprof", __dir__)}"])
        Marker = Class.new
        collector = new_collector(sample_rate: 1.0)
        #{before}
        20.times { Thread.new { MemprofilerPprof.without_profiling { sleep } } }
        Thread.pass until Thread.list.drop(1).all?(&:stop?)
        pid = fork do
          #{after}
          GC.start
          Array.new(20) { Thread.new { Marker.new; sleep } }.each { |thread| Thread.pass until thread.stop? }
          exit!(Pprof.decode(collector.flush).by_class(:allocations).fetch("Marker", 0))
        end
        print Process.wait2(pid).last.exitstatus
      RUBY
      expect(outcome.stdout).to eq("20"), outcome.to_s
    end
  end
end
