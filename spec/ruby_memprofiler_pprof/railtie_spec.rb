# frozen_string_literal: true

require "net/http"

# Needs no constant of Rails in this process.
RSpec.describe "MemprofilerPprof::Railtie", :rails do
  describe "settings" do
    it "come before the defaults, after the environment" do
      configure("config.max_frames = 7; config.sample_rate = 0.5; config.enabled = true")
      outcome = in_app("puts MemprofilerPprof.collector.max_frames, MemprofilerPprof.collector.sample_rate",
                       env: { "RUBY_MEMPROFILER_PPROF_SAMPLE_RATE" => "0.25" })
      expect(outcome.stdout).to start_with("7\n0.25\n"), outcome.to_s
    end

    it "of which one does not exist fail at boot" do
      configure("config.samplerate = 0.5")
      expect(in_app("").stderr).to include("there is no setting samplerate (did you mean sample_rate?)")
    end

    it "of which one is wrong fail at boot" do
      configure("config.interval = 0")
      outcome = in_app("puts :booted")
      expect(outcome.stderr).to include("interval must be a number of seconds above 0, got 0")
      expect(outcome.stdout).not_to include("booted")
    end

    it "that are wrong in the environment are logged, and the app runs" do
      configure("config.enabled = true")
      outcome = in_app("puts MemprofilerPprof.running?", env: { "RUBY_MEMPROFILER_PPROF_SAMPLE_RATE" => "2" })
      expect(outcome.stdout).to match(/not profiling: RUBY_MEMPROFILER_PPROF_SAMPLE_RATE must be .*\nfalse/)
      expect(outcome).to be_success
    end

    it "are there in a program that the wrapper runs" do
      configure("config.max_frames = 7")
      outcome = in_app("puts MemprofilerPprof.config.max_frames", options: ["-rruby_memprofiler_pprof/autostart"])
      expect(outcome.stdout).to match(/^7$/), outcome.to_s
    end
  end

  describe "enabled" do
    def state(*command, **options)
      outcome = command.any? ? ruby_in_app(*command, **options) : in_app(tell)
      outcome.stdout[/running: (.*)/, 1] || raise(outcome.to_s)
    end

    let(:tell) { "print 'running: ', MemprofilerPprof.running?, 10.chr" }
    let(:runner) { ["bin/rails", "runner", tell] }

    it "is false by default" do
      expect(state).to eq("false")
    end

    it "starts the profiler where the app is loaded" do
      configure("config.enabled = true")
      expect(state).to eq("true")
    end

    it "leaves out the commands of bin/rails" do
      configure("config.enabled = true")
      expect(state(*runner)).to eq("false")
    end

    it "leaves out rake" do
      configure("config.enabled = true")
      expect(state("-S", "rake", "state")).to eq("false")
    end

    it "leaves out Spring" do
      configure("module ::Spring; class Application; end; end; config.enabled = true")
      expect(state).to eq("false")
    end

    it "can be for everything" do
      configure("config.enabled = :always")
      expect([state(*runner), state("-S", "rake", "state")]).to eq(%w[true true])
    end

    it "starts before the app's code is loaded" do
      configure("config.enabled = true; config.sample_rate = 1; config.max_heap_samples = 1_000_000")
      File.write("#{app}/app/models/early.rb", "class Early; KEPT = Array.new(50) { Object.new }; end")
      outcome = in_app("MemprofilerPprof.flush(out: 'now.pb.gz')")
      frames = MemprofilerPprof::Profile.load("#{app}/now.pb.gz").focus(/early\.rb/)
      expect(frames.total(:retained_objects).value).to be >= 50, outcome.to_s
    end
  end

  describe "files" do
    it "are below the app's root, and told to its logger" do
      configure("config.enabled = true; config.pattern = 'mine/%{pid}.pprof'")
      outcome = in_app("Dir.chdir('/') { MemprofilerPprof.stop; MemprofilerPprof.start; MemprofilerPprof.stop }")
      expect(outcome.stdout).to match(%r{wrote #{app}/mine/\d+(-1)?\.pprof}), outcome.to_s
      expect(profiles("mine")).not_to be_empty
    end

    it "are told by an event" do
      configure("config.enabled = true")
      code = <<~RUBY
        ActiveSupport::Notifications.subscribe("flush.memprofiler_pprof") do |*, payload|
          puts payload[:path], payload[:profile].class, payload[:pid] == Process.pid
        end
        MemprofilerPprof.stop
      RUBY
      expect(in_app(code).stdout).to include("#{profiles.first}\nMemprofilerPprof::ProfileData\ntrue\n")
      expect(profiles.size).to eq(1)
    end

    it "that cannot be written are told by another" do
      configure("config.enabled = true; config.pattern = '/dev/null/x.pprof'")
      code = <<~RUBY
        ActiveSupport::Notifications.subscribe(/memprofiler_pprof/) { |name, *, payload| puts name, payload[:exception].first }
        MemprofilerPprof.stop
      RUBY
      expect(in_app(code).stdout).to match(/^flush_failed.memprofiler_pprof\nErrno::E\w+$/)
    end

    it "are not lost by a subscriber that fails" do
      configure("config.enabled = true")
      code = <<~RUBY
        ActiveSupport::Notifications.subscribe("flush.memprofiler_pprof") { raise "no such luck" }
        MemprofilerPprof.stop
        puts :alive
      RUBY
      expect(in_app(code).stdout).to match(/a subscriber of flush.memprofiler_pprof failed: .*no such luck.*\nalive/m)
      expect(profiles.size).to eq(1)
    end

    it "are each process's own after a fork" do
      configure("config.enabled = true; config.sample_rate = 1; config.max_heap_samples = 1_000_000")
      in_app("Process.wait(fork { Jar.fill })")
      expect(profiles.map { |path| jars(path, "class") }).to contain_exactly({}, { "Jar" => 100 })
    end
  end

  describe "the endpoint" do
    let(:get) { <<~'RUBY' }
      status, _, body = Rails.application.call(Rack::MockRequest.env_for("/debug/pprof/cmdline", "HTTP_HOST" => "x"))
      puts "status: #{status}"
    RUBY

    it "is not mounted by default" do
      expect(in_app(get).stdout).to include("status: 404")
    end

    it "is mounted before what matches everything" do
      configure("config.endpoint = '/debug/pprof'; config.endpoint_authorize = ->(_) { true }")
      expect(in_app(get).stdout).to include("status: 200")
    end

    it "is closed without a permission" do
      configure("config.endpoint = '/debug/pprof'")
      expect(in_app(get).stdout).to include("status: 403")
    end
  end

  it "boots an app that has no controllers and no jobs" do
    configure("config.enabled = true")
    source = File.read("#{app}/config/application.rb")
    File.write("#{app}/config/application.rb", source.gsub(/^require "a.*\n|^.*active_job.*\n/, ""))
    FileUtils.rm_rf(["#{app}/app", "#{app}/config/routes.rb"])
    # In production Rails 7 loads a controller of its own.
    outcome = in_app("puts $LOADED_FEATURES.grep(%r{action_controller/base|active_job/base}).size, " \
                     "MemprofilerPprof.running?", env: { "RAILS_ENV" => "development" })
    expect(outcome.stdout).to start_with("0\ntrue\n"), outcome.to_s
  end

  # What the machine's stack happens to refer to survives: so several versions.
  it "lets classes that were reloaded go at the next flush" do
    configure("config.enabled = true; config.sample_rate = 1")
    code = <<~'RUBY'
      def version
        Jar.fill
        Jar.class_eval("def self.at_runtime = new; at_runtime", "jar", 1)
        Jar::SHELF.clear
        WeakRef.new(Jar)
      end
      require "weakref"
      versions = Array.new(20) { version.tap { Rails.application.reloader.reload! } }
      MemprofilerPprof.flush
      3.times { GC.start }
      puts "left: #{versions.count(&:weakref_alive?)}"
    RUBY
    outcome = in_app(code, env: { "RAILS_ENV" => "development" })
    expect(outcome.stdout[/left: (\d+)/, 1]&.to_i).to be <= 2, outcome.to_s
  end
end
