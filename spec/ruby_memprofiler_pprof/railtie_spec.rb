# frozen_string_literal: true

# Needs no Rails constant in this process. Each group boots an app once.
RSpec.describe "MemprofilerPprof::Railtie", :rails do
  # The status of the endpoint's response.
  status = <<~'RUBY'
    Rails.application.call(Rack::MockRequest.env_for("/debug/pprof/cmdline", "HTTP_HOST" => "x")).first
  RUBY

  describe "without settings" do
    before(:context) { @answers = ask({ running: "MemprofilerPprof.running?", status: status }) }

    it "does not start the profiler" do
      expect(@answers[:running]).to be(false), @answers.to_s
    end

    it "does not mount the endpoint" do
      expect(@answers[:status]).to eq(404), @answers.to_s
    end
  end

  describe "settings" do
    before(:context) do
      configure("config.max_frames = 7; config.sample_rate = 0.5; config.enabled = true; " \
                "config.endpoint = '/debug/pprof'; config.endpoint_authorize = ->(_) { true }")
      questions = { max_frames: "MemprofilerPprof.collector.max_frames", status: status,
                    sample_rate: "MemprofilerPprof.collector.sample_rate", running: "MemprofilerPprof.running?" }
      @answers = ask(questions, env: { "RUBY_MEMPROFILER_PPROF_SAMPLE_RATE" => "0.25" })
    end

    it "take precedence over the defaults" do
      expect(@answers[:max_frames]).to eq(7), @answers.to_s
    end

    it "yield to the environment" do
      expect(@answers[:sample_rate]).to eq(0.25), @answers.to_s
    end

    it "start the profiler when the app is loaded" do
      expect(@answers[:running]).to be(true), @answers.to_s
    end

    it "mount the endpoint before a catch-all route" do
      expect(@answers[:status]).to eq(200), @answers.to_s
    end
  end

  describe "settings in a program run by the wrapper" do
    before(:context) do
      configure("config.max_frames = 7; config.endpoint = '/debug/pprof'")
      @answers = ask({ max_frames: "MemprofilerPprof.config.max_frames", status: status },
                     options: ["-rruby_memprofiler_pprof/autostart"])
    end

    it "apply" do
      expect(@answers[:max_frames]).to eq(7), @answers.to_s
    end

    it "say that the endpoint answers nobody" do
      expect(@answers.to_s).to include("/debug/pprof answers nobody: config.memprofiler_pprof.endpoint_authorize must")
    end

    it "leave the endpoint closed without permission" do
      expect(@answers[:status]).to eq(403), @answers.to_s
    end
  end

  it "mounts no endpoint if the profiler is switched off" do
    configure("config.enabled = true; config.endpoint = '/debug/pprof'; config.endpoint_authorize = ->(_) { true }")
    answers = ask({ status: status, running: "MemprofilerPprof.running?" },
                  env: { "RUBY_MEMPROFILER_PPROF_ENABLED" => "off" })
    expect(%i[status running].map { |question| answers[question] }).to eq([404, false]), answers.to_s
  end

  describe "settings that are wrong" do
    before(:context) do
      configure("begin; config.samplerate = 0.5; rescue NoMethodError => e; warn(e.full_message); end; " \
                "config.interval = 0")
      @outcome = in_app("puts :booted")
    end

    it "fail on assignment if there is no such setting" do
      expect(@outcome.stderr).to match(/undefined method .samplerate='.*Did you mean\?\s+sample_rate=/m)
    end

    it "fail at boot" do
      expect(@outcome.stderr).to include("interval must be a number of seconds above 0, got 0")
      expect(@outcome.stdout).not_to include("booted")
    end
  end

  it "logs settings that are wrong in the environment, and the app runs" do
    configure("config.enabled = true")
    outcome = in_app("puts MemprofilerPprof.running?", env: { "RUBY_MEMPROFILER_PPROF_SAMPLE_RATE" => "2" })
    expect(outcome.stdout).to match(/not profiling: RUBY_MEMPROFILER_PPROF_SAMPLE_RATE must be .*\nfalse/)
    expect(outcome).to be_success
  end

  describe "enabled" do
    def state(*command)
      outcome = command.any? ? ruby_in_app(*command) : in_app(report)
      outcome.stdout[/running: (.*)/, 1] || raise(outcome.to_s)
    end

    let(:report) { "print 'running: ', MemprofilerPprof.running?, 10.chr" }
    let(:spring) { "module ::Spring; class Application; end; end" }

    it "makes no difference to what is announced: a server or job runner, but no tool and no test" do
      report = "print 'announced: ', MemprofilerPprof::Service.announced?, 10.chr"
      announced = [in_app(report), in_app(report, env: { "RAILS_ENV" => "test" }),
                   ruby_in_app("bin/rails", "runner", report)]
      expect(announced.map { |outcome| outcome.stdout[/announced: (.*)/, 1] }).to eq(%w[true false false])
    end

    it "excludes the commands of bin/rails" do
      configure("config.enabled = true")
      expect(state("bin/rails", "runner", report)).to eq("false")
    end

    it "excludes rake" do
      configure("config.enabled = true")
      expect(state("-S", "rake", "state")).to eq("false")
    end

    describe "with rake tasks that run a job runner" do
      before do
        configure("config.enabled = true")
        FileUtils.mkdir_p("#{app}/lib/tasks")
        File.write("#{app}/lib/tasks/jobs.rake", "task('jobs:work', [:queue] => :environment) { #{report} }")
      end

      it "includes them" do
        expect(state("-S", "rake", "jobs:work[mail]")).to eq("true")
      end

      it "includes them as commands of bin/rails" do
        expect(state("bin/rails", "jobs:work[mail]")).to eq("true")
      end
    end

    it "excludes Spring" do
      configure("#{spring}; config.enabled = true")
      expect(state).to eq("false")
    end

    # All of the above at once: this bin/rails command runs rake.
    it "can include everything" do
      configure("#{spring}; config.enabled = :always")
      expect(state("bin/rails", "state")).to eq("true")
    end
  end

  describe "files" do
    before(:context) do
      configure("config.enabled = true; config.pattern = 'mine/%{pid}.pprof'; " \
                "config.sample_rate = 1; config.max_heap_samples = 1_000_000")
      File.write("#{app}/app/models/early.rb", "class Early; KEPT = Array.new(50) { Object.new }; end")
      @answers = ask({ first: <<~RUBY, child: <<~RUBY, event: <<~RUBY, failed: <<~RUBY, survived: <<~RUBY })
        Dir.chdir("/") { MemprofilerPprof.stop }
        Dir["mine/*"]
      RUBY
        MemprofilerPprof.start
        fork { Jar.fill }.tap { |pid| Process.wait(pid) }
      RUBY
        reported = nil
        subscriber = ->(*, payload) { reported = [*payload.values_at(:path, :pid), payload[:profile].class] }
        before = Dir["mine/*"]
        ActiveSupport::Notifications.subscribed(subscriber, "flush.memprofiler_pprof") { MemprofilerPprof.stop }
        { reported: reported, written: Dir["mine/*"] - before, pid: Process.pid }
      RUBY
        reported = []
        subscriber = ->(name, *, payload) { reported << name << payload[:exception].first }
        MemprofilerPprof.start(pattern: "/dev/null/x.pprof")
        ActiveSupport::Notifications.subscribed(subscriber, /memprofiler_pprof/) { MemprofilerPprof.stop }
        reported
      RUBY
        MemprofilerPprof.start
        before = Dir["mine/*"]
        subscriber = ->(*) { raise "no such luck" }
        ActiveSupport::Notifications.subscribed(subscriber, "flush.memprofiler_pprof") { MemprofilerPprof.stop }
        Dir["mine/*"] - before
      RUBY
    end

    it "are below the app's root, and logged" do
      expect(@answers[:first]).to match([%r{\Amine/\d+\.pprof\z}]), @answers.to_s
      expect(@answers.stdout).to include("wrote #{app}/#{@answers[:first].first}")
    end

    it "include what was allocated when the app's code was loaded" do
      frames = MemprofilerPprof::Profile.load("#{app}/#{@answers[:first].first}").focus(/early\.rb/)
      expect(frames.total(:retained_objects).value).to be >= 50, @answers.to_s
    end

    it "are announced by an event" do
      event = @answers[:event]
      expect(event[:written].size).to eq(1), @answers.to_s
      expect(event[:reported]).to eq(["#{app}/#{event[:written].first}", event[:pid], "MemprofilerPprof::ProfileData"])
    end

    it "that cannot be written are announced by another event" do
      expect(@answers[:failed]).to match(["flush_failed.memprofiler_pprof", /\AErrno::E\w+\z/]), @answers.to_s
    end

    it "are not lost if a subscriber fails" do
      expect(@answers.stdout).to match(/a subscriber of flush.memprofiler_pprof failed: .*no such luck/)
      expect(@answers[:survived].size).to eq(1), @answers.to_s
    end

    it "are separate for each process after a fork" do
      childs, others = profiles("mine").partition { |path| File.basename(path, ".pprof") == @answers[:child].to_s }
      expect(childs.map { |path| jars(path, "class") }).to eq([{ "Jar" => 100 }]), @answers.to_s
      expect(others.map { |path| jars(path, "class") }).to eq([{}] * 3)
    end
  end

  it "takes relative names of all files from the app's root, wherever the process is started" do
    configure("config.enabled = true; config.socket = 'tmp/a.sock'; config.cpu = true; config.dump_above = 1 << 20; " \
              "config.pattern = config.cpu_pattern = 'mine/%{index}.pprof'")
    outcome = Dir.mktmpdir { |elsewhere| ruby_in_app("-e", <<~RUBY, chdir: elsewhere) }
      require "#{app}/config/environment"
      puts MemprofilerPprof.profiler.socket
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
      dump = "#{app}/mine/0-oom.pprof"
      sleep(0.01) until File.exist?(dump) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    RUBY
    expect(outcome.stdout).to match(%r{^#{File.realpath(app)}/tmp/a\.sock$}), outcome.to_s
    expect(profiles("mine").map { |path| File.basename(path) }).to match_array(%w[0-oom.pprof 0.pprof 0_x1.pprof])
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

  # Whatever the machine stack happens to refer to survives: hence several versions.
  it "releases reloaded classes at the next flush" do
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
