# frozen_string_literal: true

# In separate processes: Delayed Job itself, with a backend that keeps nothing and runs jobs immediately.
RSpec.describe "MemprofilerPprof::DelayedJob", :threads do
  before { skip "Delayed Job is not installed" unless UsableGems.include?("delayed_job") }

  # The output of code in a process with labelled jobs.
  def printed_by(code, env: {})
    outcome = run_ruby(<<~RUBY, env: env, gems: true)
      require "active_support/all"
      require "delayed_job"
      class Backend
        include Delayed::Backend::Base
        attr_accessor :handler, :priority, :queue, :run_at, :id
        def initialize(options) = options.each { |name, value| public_send("\#{name}=", value) }
      end
      Delayed::Worker.backend = Backend
      Delayed::Worker.delay_jobs = false
      require "ruby_memprofiler_pprof/delayed_job"
      MemprofilerPprof::DelayedJob.install
      Count = Struct.new(:number) do
        def before(*) = puts("before: \#{MemprofilerPprof.labels[:job]}")
        def perform = puts("job: \#{MemprofilerPprof.labels[:job]}")
        def display_name = "Count \#{number}"
      end
      #{code}
    RUBY
    raise outcome.to_s unless outcome.success?

    outcome.stdout
  end

  it "labels what a job and its hooks allocate with its class" do
    expect(printed_by("Delayed::Job.enqueue(Count.new(1))")).to eq("before: Count\njob: Count\n")
  end

  it "announces a job runner" do
    announced = "puts MemprofilerPprof::Service.announced?"
    expect(printed_by("#{announced}; Delayed::Job.enqueue(Count.new(1)); #{announced}"))
      .to match(/\Afalse\n.*true\n\z/m)
  end

  it "labels a delayed call with its method" do
    expect(printed_by("Count.new(1).delay.perform")).to include("job: Count#perform\n")
  end

  it "names a job of Active Job, not its wrapper" do
    skip "Active Job is not installed" unless UsableGems.include?("activejob")

    expect(printed_by(<<~RUBY)).to eq("job: Restock\n")
      require "active_job"
      ActiveJob::Base.logger = nil
      ActiveJob::Base.queue_adapter = :delayed_job
      class Restock < ActiveJob::Base
        def perform = puts("job: \#{MemprofilerPprof.labels[:job]}")
      end
      Restock.perform_later
    RUBY
  end

  it "lets Delayed Job report a job that cannot be read" do
    expect(printed_by(<<~RUBY)).to eq("begins\nDelayed::DeserializationError\n")
      Delayed::Worker.lifecycle.before(:invoke_job) { puts "begins" }
      begin
        Backend.new(handler: "--- !ruby/object:NoSuchJob {}").invoke_job
      rescue => e
        puts e.class
      end
    RUBY
  end

  it "runs a job without the label if there is no room for it" do
    expect(printed_by(<<~RUBY)).to include("job: \n")
      MemprofilerPprof.with_labels(Array.new(16) { |n| ["label\#{n}", n] }.to_h) { Delayed::Job.enqueue(Count.new(1)) }
    RUBY
  end

  it "patches nothing if the profiler is switched off" do
    env = { "RUBY_MEMPROFILER_PPROF_ENABLED" => "0" }
    expect(printed_by("Delayed::Job.enqueue(Count.new(1))", env: env)).to include("job: \n")
  end
end
