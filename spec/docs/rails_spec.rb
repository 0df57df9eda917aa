# frozen_string_literal: true

require "ruby_memprofiler_pprof/rake_task"
require "tmpdir"

RSpec.describe "docs/rails.md" do
  def examples(heading = nil)
    Manual.ruby("docs/rails.md", heading)
  end

  it "defines a rake task" do
    Dir.mktmpdir do |directory|
      File.write("#{directory}/Rakefile", <<~RUBY)
        #{examples("Rake").first}
        task(:import) { KEPT = Array.new(50_000) { Object.new } }
      RUBY
      outcome = run_command(RbConfig.ruby, *load_path_options, "-S", "rake", "import:profile", chdir: directory)
      expect(outcome).to be_success, outcome.to_s
      profile = MemprofilerPprof::Profile.load(Dir["#{directory}/tmp/profiles/*.pprof"].first)
      expect(profile.samples.flat_map { |sample| sample.stack.map(&:name) }).to include("block in <top (required)>")
    end
  end

  it "names the settings that a rake task lacks" do
    sentence = Manual.section("docs/rails.md", "Rake")[/A task has.*?;/m]
    configuration = MemprofilerPprof::Configuration
    lacking = configuration.settings.map(&:keyword).reject { |name| MemprofilerPprof::RakeTask.method_defined?(name) }
    sections = configuration::DESTINATION_SETTINGS + configuration::CPU_SETTINGS
    expect(sentence.scan(/`(\w+)`/).flatten.map(&:to_sym) - [:description])
      .to match_array(lacking - sections.map(&:keyword))
    expect(sentence).to include("settings.md#destinations", "settings.md#cpu-time")
  end

  describe "on Rails", :rails do
    before(:context) do
      configure("")
      File.write("#{app}/config/initializers/memprofiler_pprof.rb", examples.first)
      type = "MemprofilerPprof::Rails::Options"
      options = "#{type}.instance_methods(false).grep(/\\w\\z/).to_h { |name| [name, #{type}.new.send(name).inspect] }"
      setup = "[MemprofilerPprof.config.interval, MemprofilerPprof.running?]"
      @answers = ask({ options: options, setup: setup, failures: <<~RUBY })
        $reported = []
        Errors = Class.new { def report(error, handled:) = $reported.push(error.message, handled) }
        Rails.define_singleton_method(:error) { Errors.new }
        #{examples[1]}
        ActiveSupport::Notifications.instrument("flush_failed.memprofiler_pprof", exception_object: IOError.new("full"))
        $reported
      RUBY
    end

    it "has the settings" do
      expect(Manual.defaults("docs/rails.md", "Settings")).to eq(@answers[:options]), @answers.to_s
    end

    it "sets the profiler up" do
      expect(@answers[:setup]).to eq([300, true]), @answers.to_s
    end

    it "reports failures" do
      expect(@answers[:failures]).to eq(["full", true]), @answers.to_s
    end
  end

  it "labels the jobs of Delayed Job" do
    skip "Delayed Job is not installed" unless UsableGems.include?("delayed_job")

    outcome = run_ruby("require 'active_support/all'\nrequire 'delayed_job'\n#{examples[3]}\n" \
                       "print Delayed::Backend::Base.ancestors", gems: true)
    expect(outcome.stdout).to include("MemprofilerPprof::DelayedJob::Job"), outcome.to_s
  end

  it "labels the jobs of Resque" do
    outcome = run_ruby("require #{StandIns.path("resque").inspect}\n#{examples[4]}\n" \
                       "print Resque::Job.ancestors", gems: true)
    expect(outcome.stdout).to include("MemprofilerPprof::Resque::Job"), outcome.to_s
  end

  it "installs the middleware of Sidekiq" do
    skip "Sidekiq is not installed" unless UsableGems.include?("sidekiq")

    # Where Sidekiq 7 and Sidekiq 6 keep a server's middlewares.
    config = "(Sidekiq.respond_to?(:default_configuration) ? Sidekiq.default_configuration : Sidekiq)"
    outcome = run_ruby("require 'sidekiq/cli'\n#{examples[2]}\n" \
                       "print #{config}.server_middleware.entries.map(&:klass)", gems: true)
    expect(outcome.stdout).to include("MemprofilerPprof::Sidekiq::Middleware"), outcome.to_s
  end
end
