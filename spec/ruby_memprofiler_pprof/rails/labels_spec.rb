# frozen_string_literal: true

RSpec.describe "MemprofilerPprof::Rails::Labels", :rails do
  def self.get(path)
    "Rails.application.call(Rack::MockRequest.env_for('#{path}')).last.close"
  end

  job = "RestockJob.perform_later"
  no_room = [get("/jars"), job].map do |work|
    "MemprofilerPprof.with_labels(Array.new(16) { |n| ['a' * (n + 1), n] }.to_h) { #{work} }"
  end.join("\n")

  # Boots the app and takes a profile of each piece of code.
  def profile(pieces, settings = "config.enabled = true")
    configure(settings)
    questions = pieces.to_h do |name, code|
      [name, "MemprofilerPprof.profile(sample_rate: 1, out: '#{name}.pb.gz') { #{code} }\ntrue"]
    end
    @answers = ask(questions)
  end

  # The retained jars, by label, after a piece.
  def jars_after(name, label)
    expect(@answers[name]).to be(true), @answers.to_s
    jars("#{app}/#{name}.pb.gz", label)
  end

  describe "by default" do
    before(:context) do
      profile({ action: self.class.get("/jars"), api: self.class.get("/api/jars"), job: job, no_room: no_room })
    end

    it "name the action that allocated" do
      expect(jars_after(:action, "endpoint")).to eq("jars#index" => 100)
    end

    it "name the action of an API, including its callbacks and namespace" do
      expect(jars_after(:api, "endpoint")).to eq("api/jars#index" => 100)
    end

    it "name the job that allocated" do
      expect(jars_after(:job, "job")).to eq("RestockJob" => 100)
    end

    it "are left out if there is no room for them" do
      expect(jars_after(:no_room, "a" * 16)).to eq("15" => 200)
    end
  end

  describe "in an app that does not start the profiler" do
    patches = "[ActionController::Base, ActiveJob::Base].sum { |c| c.ancestors.join(' ').scan('Rails::Labels').size }"
    start = "MemprofilerPprof.start(files: false); #{patches}"

    it "patch nothing until it starts" do
      configure("")
      expect(ask({ before: patches, after: start }).then { |answers| %i[before after].map { |key| answers[key] } })
        .to eq([0, 2])
    end

    it "patch nothing if it is switched off" do
      configure("config.enabled = :always")
      answers = ask({ before: patches, after: start }, env: { "RUBY_MEMPROFILER_PPROF_ENABLED" => "0" })
      expect(%i[before after].map { |key| answers[key] }).to eq([0, 0])
    end
  end

  describe "of other gems" do
    # What is patched of each.
    types = { "resque" => "Resque::Job", "opentelemetry" => "OpenTelemetry::Context.singleton_class" }
    types["delayed_job"] = "Delayed::Backend::Base" if UsableGems.include?("delayed_job")

    # Loads them where Bundler.require would.
    before(:context) do
      files = types.keys.map { |gem| gem == "delayed_job" ? gem : StandIns.path(gem) }
      requires = files.map { |file| "require #{file.inspect}\n" }.join
      source = File.read("#{app}/config/application.rb")
      File.write("#{app}/config/application.rb", source.sub(/^# As Bundler.*\n/) { |comment| comment + requires })
    end

    # The gems that are patched in the app.
    define_method(:patched) do |settings, **keywords|
      configure(settings)
      questions = types.transform_values { |type| "#{type}.ancestors.join.include?('MemprofilerPprof')" }
      answers = ask(questions, **keywords)
      types.keys.select { |gem| answers[gem.to_sym] }
    end

    it "need patches, when the profiler starts" do
      expect([patched(""), patched("config.enabled = true")]).to eq([[], types.keys])
    end

    it "need them, too, if it started before Rails" do
      expect(patched("", options: ["-rruby_memprofiler_pprof/autostart"])).to eq(types.keys)
    end

    it "can be switched off for jobs" do
      expect(patched("config.enabled = true; config.label_jobs = false")).to eq(%w[opentelemetry])
    end

    it "can be switched off for all" do
      env = { "RUBY_MEMPROFILER_PPROF_ENABLED" => "0" }
      expect(patched("config.enabled = true", env: env)).to eq([])
    end
  end

  describe "that are switched off" do
    before(:context) do
      profile({ action: self.class.get("/jars"), job: job },
              "config.enabled = true; config.label_controllers = config.label_jobs = false")
    end

    it "do not name the action" do
      expect(jars_after(:action, "endpoint")).to eq(nil => 100)
    end

    it "do not name the job" do
      expect(jars_after(:job, "job")).to eq(nil => 100)
    end
  end
end
