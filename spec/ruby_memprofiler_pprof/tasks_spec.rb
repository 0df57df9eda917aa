# frozen_string_literal: true

RSpec.describe "The rake tasks" do
  describe "in a Rails app", :rails do
    it "are described" do
      names = rake("-T", "memprofiler").stdout.scan(/^rake memprofiler:(\w+)/).flatten
      expect(names).to match_array(%w[boot diff flamegraph leaks record report])
    end

    describe "memprofiler:record" do
      it "profiles the tasks after it, with the app's configuration" do
        configure("config.sample_rate = 1; config.pattern = 'mine/%{pid}.pprof'")
        outcome = rake("memprofiler:record", "fill")
        expect(profiles("mine").map { |path| jars(path, "class") }).to eq([{ "Jar" => 100 }]), outcome.to_s
      end
    end

    describe "memprofiler:boot" do
      describe "of an app that starts the profiler" do
        before(:context) do
          configure("config.enabled = true")
          @outcome = rake("memprofiler:boot")
        end

        it "shows what booting retains, by gem" do
          rows = @outcome.stdout.scan(/^ *([\d.]+) MiB +[\d.]+% +([\d.]+) MiB +[\d.]+%  (\S+)$/)
          total = @outcome.stdout[/^([\d.]+) MiB retained/, 1].to_f
          # All but what has no stack, which may make a difference when both are rounded.
          largest, _, gem = rows.first
          expect([largest.to_f, gem]).to match([be_within(0.015).of(total), "app"]), @outcome.to_s
          expect(rows.map(&:last)).to include("railties", "activesupport", "actionpack")
        end

        it "names the profile, which is the only one, in a directory of its owner's" do
          expect(@outcome.stdout).to end_with("All of it: #{profiles.first}\n"), @outcome.to_s
          expect(profiles.size).to eq(1)
          expect(File.stat(File.dirname(profiles.first)).mode & 0o777).to eq(0o700)
        end
      end

      it "fails if the app does not boot" do
        configure("raise 'no such luck'")
        outcome = rake("memprofiler:boot")
        expect(outcome.stderr).to include("no such luck", "the app did not boot in a separate process")
        expect(outcome).not_to be_success
      end
    end
  end

  describe "outside Rails" do
    def rake(*arguments, **options)
      code = <<~RUBY
        load "ruby_memprofiler_pprof/tasks.rb"
        Rake::Task.define_task(:slow) { sleep 0.01 until Dir["tmp/profiles/*.pprof"].size > 1 }
      RUBY
      run_command(RbConfig.ruby, *load_path_options, "-rrake", "-S", "rake", "-f", "/dev/null", "-E", code, *arguments,
                  **options)
    end

    it "memprofiler:record takes an interval" do
      Dir.mktmpdir do |directory|
        outcome = rake("memprofiler:record[0.1]", "slow", chdir: directory)
        expect(Dir["#{directory}/tmp/profiles/*.pprof"].size).to be >= 3, outcome.to_s
      end
    end

    it "memprofiler:record refuses an invalid interval" do
      expect(rake("memprofiler:record[x]").stderr).to include('interval must be a number of seconds, got "x"')
    end

    %w[report diff leaks flamegraph].each do |command|
      it "memprofiler:#{command} is the command #{command}, with its arguments and exit status" do
        by_rake = rake("memprofiler:#{command}[/no/such.pprof,/nor/such.pprof]")
        by_command = run_command(RbConfig.ruby, *load_path_options, SubprocessHelpers::EXECUTABLE, command,
                                 "/no/such.pprof", "/nor/such.pprof")
        expect([by_rake.stdout, by_rake.stderr, by_rake.status.exitstatus])
          .to eq([by_command.stdout, by_command.stderr, by_command.status.exitstatus])
        expect(by_rake).not_to be_success
      end
    end
  end
end
