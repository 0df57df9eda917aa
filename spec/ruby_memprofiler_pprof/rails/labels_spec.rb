# frozen_string_literal: true

RSpec.describe "MemprofilerPprof::Rails::Labels", :rails do
  # The jars that are kept, by label, after some code.
  def jars_after(code, label, settings = "")
    configure("config.sample_rate = 1; #{settings}")
    outcome = in_app("MemprofilerPprof.start\n#{code}\nMemprofilerPprof.flush(out: 'now.pb.gz')")
    raise outcome.to_s unless outcome.success?

    jars("#{app}/now.pb.gz", label)
  end

  def get(path)
    "Rails.application.call(Rack::MockRequest.env_for('#{path}')).last.close"
  end

  it "tell the action that allocated" do
    expect(jars_after(get("/jars"), "endpoint")).to eq("jars#index" => 100)
  end

  it "tell the action of an API with its callbacks and namespace" do
    expect(jars_after(get("/api/jars"), "endpoint")).to eq("api/jars#index" => 100)
  end

  it "of controllers can be switched off" do
    expect(jars_after(get("/jars"), "endpoint", "config.label_controllers = false")).to eq(nil => 100)
  end

  it "tell the job that allocated" do
    expect(jars_after("RestockJob.perform_later", "job")).to eq("RestockJob" => 100)
  end

  it "are left out where there is no room for them" do
    code = [get("/jars"), "RestockJob.perform_later"].map do |work|
      "MemprofilerPprof.with_labels(Array.new(16) { |n| ['a' * (n + 1), n] }.to_h) { #{work} }"
    end
    expect(jars_after(code.join("\n"), "a" * 16)).to eq("15" => 200)
  end

  it "of jobs can be switched off" do
    expect(jars_after("RestockJob.perform_later", "job", "config.label_jobs = false")).to eq(nil => 100)
  end
end
