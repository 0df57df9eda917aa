# frozen_string_literal: true

require "fileutils"
require "tmpdir"

RSpec.describe "ruby_memprofiler_pprof_profile" do
  around { |example| Dir.mktmpdir("with space") { |directory| Dir.chdir(directory) { example.run } } }

  let(:wrapper) { File.join(SubprocessHelpers::EXE, "ruby_memprofiler_pprof_profile") }

  # Runs the wrapper with a command; settings are variables without their prefix.
  def profile(*command, env: {}, **settings)
    settings = settings.transform_keys { |name| "RUBY_MEMPROFILER_PPROF_#{name}" }
    run_command(RbConfig.ruby, wrapper, *command, env: settings.merge(env))
  end

  def profile_ruby(code, *options, **keywords)
    profile(RbConfig.ruby, *options, "-e", code, **keywords)
  end

  def profiles
    Dir.glob("tmp/profiles/*.pprof").map { |name| Pprof.decode(File.binread(name)) }
  end

  describe "the profiled program" do
    it "writes a profile when it exits" do
      profile_ruby("class Kept; end; KEPT = Array.new(20) { Kept.new }", SAMPLE_RATE: "1")
      expect(profiles.sum { |profile| profile.by_class["Kept"] }).to eq(20)
    end

    it "writes profiles while it runs" do
      profile_ruby("sleep 0.01 until Dir['tmp/profiles/*.pprof'].size > 1; exit!", INTERVAL: "0.1")
      expect(profiles.size).to be > 1
    end

    it "writes where PATTERN says" do
      profile_ruby("", PATTERN: "a b/%{index}.pprof")
      expect(Dir.glob("**/*.pprof")).to eq(["a b/0.pprof"])
    end

    it "takes the collector's settings from the environment" do
      outcome = profile_ruby("c = MemprofilerPprof::Autostart.collector; p c.sample_rate, c.max_frames",
                             SAMPLE_RATE: "0.25", MAX_FRAMES: "7")
      expect(outcome.stdout).to eq("0.25\n7\n")
    end

    it "takes the flusher's settings from the environment" do
      outcome = profile_ruby("print MemprofilerPprof::Autostart.flusher.interval", INTERVAL: "12.5")
      expect(outcome.stdout).to eq("12.5")
    end

    it "is not profiled if ENABLED is false" do
      outcome = profile_ruby("p MemprofilerPprof::Autostart.start, MemprofilerPprof.collectors.any?(&:running?)",
                             ENABLED: "0", SAMPLE_RATE: "1")
      expect([outcome.stdout, outcome.stderr, Dir.children(".")]).to eq(["false\nfalse\n", "", []])
    end

    it "is profiled once, however often that is requested" do
      outcome = profile_ruby("print MemprofilerPprof::Autostart.start, MemprofilerPprof.collectors.size")
      expect(outcome.stdout).to eq("true1")
    end

    it "does not notice" do
      outcome = profile("--quiet", RbConfig.ruby, "-e", "p ARGV; warn $stdin.read.inspect; exit 3", "a b", "")
      expect([outcome.stdout, outcome.stderr, outcome.status.exitstatus]).to eq([%(["a b", ""]\n), %(""\n), 3])
    end

    it "is profiled in its Ruby subprocesses" do
      profile_ruby('system(Gem.ruby, "-e", "class Kept; end; KEPT = Kept.new")', SAMPLE_RATE: "1")
      expect([profiles.size, profiles.sum { |profile| profile.by_class["Kept"].to_i }]).to eq([2, 1])
    end

    it "is profiled in its forked children" do
      profile_ruby("Process.wait(fork {})")
      expect(profiles.size).to eq(2)
    end

    it "need not be Ruby" do
      expect(profile("echo", "a  b")).to have_attributes(success?: true, stdout: "a  b\n", stderr: "")
    end

    it "can use Bundler with other versions of default gems, since none is activated" do
      code = "print Gem.loaded_specs.keys.sort.join(' ')"
      expect(profile_ruby(code, SOCKET: "a.sock").stdout).to eq(run_command(RbConfig.ruby, "-e", code).stdout)
    end
  end

  describe "the environment" do
    it "keeps what is in RUBYOPT" do
      expect(profile_ruby("print $VERBOSE, ENV['RUBYOPT']", env: { "RUBYOPT" => "-w" }).stdout)
        .to eq("true-w -rruby_memprofiler_pprof/autostart")
    end

    it "has the option once when wrappers are nested" do
      outcome = profile(RbConfig.ruby, wrapper, "env")
      expect(outcome.stdout.scan("-rruby_memprofiler_pprof/autostart").size).to eq(1)
    end

    it "keeps what is in RUBYLIB, behind the gem" do
      expect(profile("env", env: { "RUBYLIB" => "/some where" }).stdout)
        .to include("RUBYLIB=#{SubprocessHelpers::LIB}:/some where\n")
    end

    it "works from a checkout with a space in its path, by a link" do
      FileUtils.cp_r([SubprocessHelpers::EXE, SubprocessHelpers::LIB], ".")
      File.symlink("exe/ruby_memprofiler_pprof_profile", "a link")
      outcome = run_command(RbConfig.ruby, "a link", RbConfig.ruby, "-e", "print $LOADED_FEATURES.grep(/autostart/)")
      expect(outcome.stdout).to include(File.join(File.realpath("."), "lib/ruby_memprofiler_pprof/autostart.rb"))
    end
  end

  describe "a failure of the profiler" do
    # The program prints "on" and exits with 4, whatever happens.
    let(:program) { 'print "on"; exit 4' }

    def expect_warning(outcome, message)
      expect([outcome.stdout, outcome.status.exitstatus]).to eq(["on", 4])
      expect(outcome.stderr).to match(/\A\w+ ruby_memprofiler_pprof .*#{message}.*\n\z/)
    end

    it "is a warning if a setting is wrong" do
      expect_warning(profile_ruby(program, SAMPLE_RATE: "2"),
                     'not profiling: RUBY_MEMPROFILER_PPROF_SAMPLE_RATE must be a number from 0 to 1, got "2"')
    end

    it "is a warning if a setting is unknown" do
      expect_warning(profile("--quiet", RbConfig.ruby, "-e", program, RATE: "2"),
                     "RUBY_MEMPROFILER_PPROF_RATE is not a setting .did you mean SAMPLE_RATE")
    end

    it "is a warning if the extension is missing" do
      FileUtils.cp_r([SubprocessHelpers::EXE, SubprocessHelpers::LIB], ".")
      Dir.glob("lib/**/*.{so,bundle}").each { |file| File.unlink(file) }
      expect_warning(run_command(RbConfig.ruby, "exe/ruby_memprofiler_pprof_profile", RbConfig.ruby, "-e", program),
                     "not profiling: ruby_memprofiler_pprof is not compiled")
    end

    it "is a warning if the extension cannot be loaded" do
      FileUtils.cp_r([SubprocessHelpers::EXE, SubprocessHelpers::LIB], ".")
      Dir.glob("lib/**/*.{so,bundle}").each { |file| File.write(file, "no library") }
      expect_warning(run_command(RbConfig.ruby, "exe/ruby_memprofiler_pprof_profile", RbConfig.ruby, "-e", program),
                     "not profiling: .*(too short|invalid ELF header|not a mach-o)")
    end

    it "is a warning if files cannot be written" do
      File.write("tmp", "in the way")
      expect_warning(profile_ruby(program), "cannot write .*tmp/profiles")
    end
  end

  describe "a command that cannot be run" do
    it "exits with 127 if it is not found" do
      expect(profile("no-such-command"))
        .to have_attributes(status: have_attributes(exitstatus: 127), stderr: /command not found.*no-such-command/)
    end

    it "exits with 126 if it cannot be executed" do
      File.write("file", "")
      expect(profile("./file"))
        .to have_attributes(status: have_attributes(exitstatus: 126), stderr: %r{Permission denied.*\./file})
    end

    it "exits with 126 if it is a directory" do
      expect(profile("/").status.exitstatus).to eq(126)
    end

    it "is not parsed by a shell" do
      expect(profile("echo on; true").status.exitstatus).to eq(127)
    end

    it "can have spaces in its name" do
      File.write("a command", "#!/bin/sh\necho on\n", perm: 0o755)
      expect(profile("./a command").stdout).to eq("on\n")
    end
  end

  describe "options" do
    %w[-h --help].each do |option|
      it "prints every setting for #{option}" do
        outcome = profile(option)
        expect(outcome.stdout).to include(*MemprofilerPprof::Configuration.settings.filter_map(&:variable))
      end
    end

    it "prints the version" do
      expect(profile("--version").stdout).to eq("ruby_memprofiler_pprof_profile #{MemprofilerPprof::VERSION}\n")
    end

    it "end at --" do
      expect(profile("--", "echo", "-h").stdout).to eq("-h\n")
    end

    it "exits with 2 for an unknown one" do
      expect(profile("-x")).to have_attributes(status: have_attributes(exitstatus: 2), stderr: /unknown option -x/)
    end

    it "exits with 2 without a command" do
      expect(profile).to have_attributes(status: have_attributes(exitstatus: 2), stderr: /no command/)
    end
  end
end
