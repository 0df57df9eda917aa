# frozen_string_literal: true

require "ruby_memprofiler_pprof/resque"

RSpec.describe MemprofilerPprof::Resque, :threads do
  before do
    stand_in("Resque")
    stub_const("Count", job_class)
  end

  # A job that prints its label.
  let(:job_class) do
    Class.new do
      singleton_class.attr_accessor :seen

      def self.before_perform(*) = self.seen = [MemprofilerPprof.labels[:job]]
      def self.perform(*) = seen << MemprofilerPprof.labels[:job]
    end
  end

  def perform(job = "Count", *args)
    Resque::Job.new(:default, { "class" => job, "args" => args }).perform
  end

  it "labels what a job and its hooks allocate with its class" do
    described_class.install
    perform
    expect(Count.seen).to eq(%w[Count Count])
  end

  it "labels a job that runs immediately, whose class is not a name" do
    described_class.install
    perform(Count)
    expect(Count.seen.last).to eq("Count")
  end

  it "announces a job runner" do
    allow(MemprofilerPprof::Service).to receive(:announce)
    described_class.install
    perform
    expect(MemprofilerPprof::Service).to have_received(:announce)
  end

  it "names a job of Active Job, not its wrapper" do
    stub_const("ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper", Count)
    described_class.install
    perform("ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper", { "job_class" => "RestockJob", "job_id" => "1" })
    expect(Count.seen.last).to eq("RestockJob")
  end

  it "returns what the job returns" do
    described_class.install
    expect(perform).to be(true)
  end

  it "lets the job fail" do
    described_class.install
    expect { perform("NoSuchJob") }.to raise_error(NameError, /NoSuchJob/)
    expect(MemprofilerPprof.labels).to eq({})
  end

  it "runs a job without the label if there is no room for it" do
    described_class.install
    MemprofilerPprof.with_labels(Array.new(16) { |n| ["label#{n}", n] }.to_h) { perform }
    expect(Count.seen.last).to be_nil
  end

  it "patches nothing if the profiler is switched off" do
    allow(MemprofilerPprof.profiler).to receive(:enabled?).and_return(false)
    described_class.install
    perform
    expect(Count.seen.last).to be_nil
  end
end
