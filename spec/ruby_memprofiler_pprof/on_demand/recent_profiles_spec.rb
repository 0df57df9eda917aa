# frozen_string_literal: true

require "ruby_memprofiler_pprof/on_demand/recent_profiles"

RSpec.describe MemprofilerPprof::OnDemand::RecentProfiles do
  let(:clock) { ManualClock.new }
  let(:collector) { new_collector(sample_rate: 1).start }
  let(:series) { described_class.new(collector, MemprofilerPprof::StderrLogger, {}) }

  before do
    allow(MemprofilerPprof::PeriodicThread).to receive(:new).and_wrap_original do |make, *values, **options, &work|
      make.call(*values, clock: clock, **options, &work)
    end
  end

  after { series.close }

  it "has a profile at once, and one more at each interval" do
    expect(series.profiles.size).to eq(1)
    2.times { clock.advance(series.interval) }
    expect(series.profiles.map { |bytes| MemprofilerPprof::Profile.load(bytes).duration })
      .to match([be >= 0, be_positive, be_positive])
  end

  it "has a bounded number, the first among them" do
    stub_const("#{described_class}::MOST", 4)
    first = series.profiles.first
    8.times { clock.advance(series.interval) }
    expect(series.profiles).to have_attributes(size: 4, first: first)
  end

  it "has a bounded size" do
    stub_const("#{described_class}::MOST_BYTES", 1)
    4.times { (series && clock.advance(series.interval)) }
    expect(series.profiles.size).to eq(2)
  end

  # How many readers a collector can have beside those that are open.
  def free_readers
    (0..).find do
      collector.open_reader && false
    rescue MemprofilerPprof::Error
      true
    end
  end

  it "keeps no reader when it has ended, because nobody asks" do
    stub_const("#{described_class}::IDLE", 0)
    expect([series.of?(collector), free_readers]).to eq([false, 7])
  end

  it "keeps no reader when it has ended, because the collector has" do
    collector.stop
    expect([series.of?(collector), free_readers]).to eq([false, 7])
  end

  it "keeps no reader if there can be no thread" do
    # It has one.
    series
    allow(MemprofilerPprof::BackgroundThread).to receive(:start).and_raise(ThreadError)
    expect { described_class.new(collector, MemprofilerPprof::StderrLogger, {}) }.to raise_error(ThreadError)
    expect(free_readers).to eq(6)
  end

  it "goes on for its own collector" do
    expect([collector, new_collector].map { |each| series.of?(each) }).to eq([true, false])
  end

  it "ends in a forked child" do
    expect(run_ruby(<<~RUBY).stdout).to eq("[false, 1, []][true, 2]")
      require "ruby_memprofiler_pprof/on_demand/recent_profiles"
      collector = new_collector.start
      series = MemprofilerPprof::OnDemand::RecentProfiles.new(collector, MemprofilerPprof::StderrLogger, {})
      show = -> { [series.of?(collector), Thread.list.size] }
      Process.wait(fork { print [*show.call, series.profiles].inspect })
      print show.call.inspect
    RUBY
  end
end
