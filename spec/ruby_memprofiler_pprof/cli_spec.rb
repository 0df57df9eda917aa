# frozen_string_literal: true

require "fileutils"
require "json"
require "shellwords"
require "tmpdir"

RSpec.describe "memprofiler" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # What the command line lists, in a separate process: the gem does not load it.
  let(:commands) do
    %w[run top dump report diff leaks why memory flamegraph export attach detach record ps stack doctor version help]
  end

  def cli(*arguments, exe: SubprocessHelpers::EXE, **keywords)
    run_command(RbConfig.ruby, File.join(exe, "memprofiler"), *arguments, **keywords)
  end

  def expect_failure(outcome, status, message)
    expect(outcome).to have_attributes(status: have_attributes(exitstatus: status), stdout: "", stderr: message)
  end

  describe "without a command" do
    it "exits with 2" do
      expect_failure(cli, 2, "memprofiler: no command given, see memprofiler --help\n")
    end

    %w[--help -h].each do |option|
      it "lists all commands for #{option}" do
        outcome = cli(option)
        expect(outcome).to be_success
        expect(outcome.stdout[/^Commands:\n((?:  .*\n)*)/, 1].scan(/^  (\w+)  +\S/).flatten).to eq(commands)
      end
    end

    it "can be called by the gem's name, too" do
      alias_of = run_command(RbConfig.ruby, File.join(SubprocessHelpers::EXE, "ruby_memprofiler_pprof"), "--version")
      expect(alias_of.stdout).to eq(cli("--version").stdout)
    end

    %w[--version -v].each do |option|
      it "prints the version for #{option}" do
        expect(cli(option).stdout).to eq("memprofiler #{MemprofilerPprof::VERSION}\n")
      end
    end
  end

  describe "in trouble" do
    before do
      maker = Pprof::Maker.new(types: [["objects\e]0;pwned\a", "count"]])
      File.binwrite("other.pprof", maker.sample(["Größe /a.rb:1"], [10]).to_s)
    end

    it "prints no commands to terminals that are in the names of a profile" do
      expect_failure(cli("report", "--value", "x", "other.pprof"), 2,
                     /\A[[:print:]]*objects\?\]0;pwned\?[[:print:]]*\n\z/)
    end

    [%w[report], %w[report --json], %w[flamegraph -o -]].each do |arguments|
      it "does not claim to have written what could not be written, for #{arguments.join(" ")}" do
        skip "this system has no full device" unless File.exist?("/dev/full")
        command = [*SubprocessHelpers::MEMPROFILER, *arguments, "other.pprof"].shelljoin
        expect_failure(run_command("sh", "-c", "#{command} > /dev/full"), 2,
                       "memprofiler: stdout: No space left on device\n")
      end
    end

    it "takes arguments in UTF-8 in any locale" do
      outcome = cli("report", "--by", "method", "--focus", "Größe", "other.pprof", env: { "LC_ALL" => "C" })
      expect(outcome).to be_success
      expect(outcome.stdout.b).to end_with("Größe  /a.rb:1\n".b)
    end

    { stdout: "/王.rb:1", stderr: "left out ./王.pprof" }.each do |stream, text|
      it "writes UTF-8 to #{stream} where Ruby would convert it" do
        File.binwrite("a.pprof", Pprof::Maker.lines({ "/王.rb:1" => [0, 1] }).to_s)
        File.write("王.pprof", "")
        File.unlink("other.pprof")
        expect(cli("report", ".", env: { "RUBYOPT" => "-Ewindows-1252:utf-8" })[stream]).to include(text)
      end
    end

    it "takes names of files that are not UTF-8" do
      name = "gr\xf6\xdfe.pprof"
      FileUtils.cp("other.pprof", name)
      %w[C C.UTF-8].product([["report"], ["flamegraph", "-o", "out.html"]]).each do |locale, arguments|
        expect(cli(*arguments, name, env: { "LC_ALL" => locale })).to be_success
      end
    end

    it "says that a core file's name cannot be such a name" do
      expect_failure(cli("stack", "gr\xf6\xdfe.core"), 2, /\Amemprofiler: .*e\.core is not UTF-8\n\z/)
    end

    it "suggests an option for one that is misspelt" do
      expect_failure(cli("leaks", "--limt", "3"), 2, /unknown option --limt, did you mean --limit\?/)
    end

    it "does not claim to have printed its help" do
      skip "this system has no full device" unless File.exist?("/dev/full")
      command = [RbConfig.ruby, File.join(SubprocessHelpers::EXE, "memprofiler"), "--help"].shelljoin
      expect(run_command("sh", "-c", "#{command} > /dev/full").status.exitstatus).to eq(2)
    end

    it "does not end with the status of a finding for what it does not know" do
      expect_failure(cli("report", "--focus", "\xff".b, "other.pprof"), 2, /\Amemprofiler: .*\n\z/)
    end
  end

  it "ends quietly after Ctrl-C" do
    outcome = run_ruby(<<~RUBY)
      require "ruby_memprofiler_pprof/cli"
      # It may be ignored here, as in a job of a shell.
      trap("INT", "DEFAULT")
      MemprofilerPprof::CLI.command("version").define_method(:call) { |_| Process.kill(:INT, Process.pid) && sleep }
      exit MemprofilerPprof::CLI.new.run(["version"])
    RUBY
    expect_failure(outcome, 130, "")
  end

  describe "an unknown command" do
    { "rnu" => "run", "docter" => "doctor", "versoin" => "version" }.each do |wrong, right|
      it "suggests #{right} for #{wrong}" do
        expect_failure(cli(wrong), 2, "memprofiler: unknown command #{wrong}, did you mean #{right}?\n")
      end
    end

    it "gets a list of all commands if none is similar" do
      expect_failure(cli("puma"), 2, /unknown command puma, commands: run, .*; to profile a program: run -- puma\n/)
    end

    it "is reported by help, too" do
      expect_failure(cli("help", "rnu"), 2, /unknown command rnu, did you mean run\?/)
    end
  end

  describe "help" do
    # Requested once per command.
    texts = {}
    define_method(:help) { |command| texts[command] ||= cli("help", command).stdout }

    it "is the same wherever it is requested" do
      commands.each { |command| expect(help(command)).to eq(cli(command, "--help").stdout) }
    end

    it "has each option below a heading" do
      expect(commands.flat_map { |command| help(command).lines }.grep(/^-/)).to eq([])
    end

    it "has each command's arguments, purpose and an example" do
      commands.each do |command|
        me = "memprofiler #{command}"
        expect(help(command))
          .to match(/\AUsage: #{me}.*\n\n\w.*^Options:\n|^Other:\n.*--help.*^Examples:\n  .*#{me}/m)
      end
    end

    it "lists every setting's option, default and variable for run" do
      text = help("run").gsub(/\s+/, " ")
      MemprofilerPprof::Configuration.settings.select(&:option).each do |setting|
        option = setting.type.boolean? ? setting.option.sub("--", "--[no-]") : "#{setting.option} "
        expect(text).to include(option, setting.purpose, "(default: #{setting.default}) $#{setting.variable}")
      end
    end

    it "fits into 120 columns" do
      lines = commands.flat_map { |command| cli("help", command).stdout.lines }
      expect(lines.map { |line| line.chomp.size }.max).to be <= 120
    end
  end

  describe "version" do
    it "prints the versions of the gem and of Ruby" do
      expect(cli("version").stdout).to eq("ruby_memprofiler_pprof #{MemprofilerPprof::VERSION}\n#{RUBY_DESCRIPTION}\n")
    end

    it "takes no arguments" do
      expect_failure(cli("version", "x"), 2, /unexpected argument x/)
    end
  end

  describe "doctor" do
    def doctor(*arguments, env: {}, **keywords)
      env = env.transform_keys { |name| "RUBY_MEMPROFILER_PPROF_#{name}" }
      cli("doctor", *arguments, env: env, **keywords)
    end

    # The checks' statuses by name.
    def statuses(...)
      JSON.parse(doctor("--json", ...).stdout)["checks"].to_h { |check| check.values_at("name", "status") }
    end

    it "finds no problems with this Ruby" do
      outcome = doctor
      expect(outcome).to have_attributes(success?: true, stderr: ""), outcome.to_s
      expect(outcome.stdout).to include("ruby_memprofiler_pprof #{MemprofilerPprof::VERSION}, #{RUBY_DESCRIPTION}\n",
                                        "In all: ok\n")
    end

    it "says the same in JSON" do
      outcome = doctor("--json", env: { "MAX_FRAMES" => "7" })
      expect(outcome).to be_success
      expect(JSON.parse(outcome.stdout)).to include(
        "version" => MemprofilerPprof::VERSION, "status" => "ok",
        "facts" => include("built_for" => RUBY_VERSION[/\d+\.\d+/], "walker_failure" => nil, "bt_method_used" => "cfp",
                           "garbage_collector" => "default", "liveness" => %w[mark_bits freeobj],
                           "liveness_used" => "mark_bits"),
        "settings" => include("max_frames" => { "value" => 7, "source" => "environment" },
                              "interval" => { "value" => 30.0, "source" => "default" })
      )
    end

    it "lists this Ruby's bugs" do
      quirks = statuses.select { |name, _| name.start_with?("quirk ractor_") }.values
      expect(quirks).to contain_exactly("ok", MemprofilerPprof::RactorGuard.needed? ? "note" : "ok")
    end

    it "shows what would be used, and why" do
      expect(doctor.stdout).to include("bt_method cfp (the default)", "liveness mark_bits (the best that is available)")
      expect(doctor(env: { "LIVENESS" => "freeobj" }).stdout)
        .to match(/liveness freeobj \(as RUBY_MEMPROFILER_PPROF_LIVENESS says\).*^  liveness: freeobj$/m)
    end

    describe "with secrets in the environment" do
      let(:env) { { "PYROSCOPE_AUTH_TOKEN" => "my-token", "PYROSCOPE_BASIC_AUTH" => "me:password" } }

      it "hides them" do
        text = doctor(env: env).stdout
        expect(text).to include("  pyroscope_auth_token: [hidden]\n", "  pyroscope_basic_auth: [hidden]\n")
        expect(text).not_to match(/my-token|password/)
      end

      it "hides them in JSON, where those that are not set are null" do
        settings = JSON.parse(doctor("--json", env: env.first(1).to_h).stdout)["settings"]
        expect(settings.slice("pyroscope_auth_token", "pyroscope_basic_auth").transform_values { |each| each["value"] })
          .to eq("pyroscope_auth_token" => "[hidden]", "pyroscope_basic_auth" => nil)
      end
    end

    it "shows how servers would sample, and why" do
      always = doctor(env: { "SAMPLING" => "always" })
      expect(always).to have_attributes(success?: true, stdout: /^ok +sampling +always: sampling is :always$/)
      expect(doctor(env: { "SAMPLING" => "windows", "SAMPLE_RATE" => "0.3" }))
        .to have_attributes(success?: false, stdout: /^degraded +sampling +always: .+$/)
    end

    it "sees every object of its test run, however few samples may be kept" do
      expect(statuses(env: { "MAX_HEAP_SAMPLES" => "500" })).to include("trial" => "ok")
    end

    it "reports whether a JIT compiler is on" do
      skip "this Ruby has no YJIT" unless RbConfig::CONFIG["YJIT_SUPPORT"].to_s.match?(/yes|dev|stats/)

      expect(run_command(RbConfig.ruby, "--yjit", SubprocessHelpers::EXECUTABLE, "doctor")
        .stdout).to match(/JIT +YJIT is on/)
    end

    it "exits with 1 if a setting is wrong" do
      expect(doctor(env: { "SEED" => "x" })).to have_attributes(
        status: have_attributes(exitstatus: 1), stdout: /^failing +settings +RUBY_MEMPROFILER_PPROF_SEED must be/
      )
    end

    it "exits with 1 if a setting is unknown" do
      expect(doctor(env: { "SED" => "x" })).to have_attributes(
        status: have_attributes(exitstatus: 1), stdout: /^degraded +settings +unknown: RUBY_MEMPROFILER_PPROF_SED\b/
      )
    end

    it "says which setting may have been meant" do
      expect(doctor(env: { "RATE" => "1" }).stdout)
        .to match(/^degraded +settings +unknown: RUBY_MEMPROFILER_PPROF_RATE \(did you mean SAMPLE_RATE\?\)$/)
    end

    { "ENABLED" => /^note +enabled +the setting enabled is false/,
      "SAMPLE_RATE" => /^note +sample_rate +is 0: no object is sampled/ }.each do |name, finding|
      it "notes that nothing is profiled by #{name}" do
        expect(doctor(env: { name => "0" }).stdout).to match(finding)
      end
    end

    it "exits with 1 if files cannot be written" do
      File.write("tmp", "in the way")
      expect(doctor).to have_attributes(status: have_attributes(exitstatus: 1), stdout: /^failing +files +cannot be/)
    end

    it "exits with 1 if its directory is gone, to which names of files are relative" do
      gone = File.join(Dir.pwd, "gone")
      Dir.mkdir(gone)
      without_directory = ["sh", "-c", 'cd "$0"; rmdir "$0"; exec "$@"', gone]
      outcome = run_command(*without_directory, *SubprocessHelpers::MEMPROFILER, "doctor")
      expect(outcome).to have_attributes(status: have_attributes(exitstatus: 1), stderr: "",
                                         stdout: /^failing +files +pattern: .* cannot be expanded: No such file/)
    end

    { "files are off" => { "FILES" => "false" },
      "profiles only go to Pyroscope" => { "PYROSCOPE_URL" => "http://localhost:4040" } }.each do |what, env|
      it "only notes that files cannot be written if #{what}" do
        File.write("tmp", "in the way")
        expect(doctor(env: env)).to have_attributes(success?: true, stdout: /^note +files +none are written/)
      end
    end

    it "exits with 1 if files cannot be written beside what goes to Pyroscope" do
      File.write("tmp", "in the way")
      [{ "FILES" => "true" }, { "PATTERN" => "tmp/%{pid}.pprof" }].each do |env|
        expect(doctor(env: { "PYROSCOPE_URL" => "http://localhost:4040", **env }))
          .to have_attributes(success?: false, stdout: /^failing +files +cannot be/)
      end
    end

    it "exits with 1 if files of CPU time cannot be written, which need no others" do
      File.write("tmp", "in the way")
      expect(doctor(env: { "FILES" => "false", "CPU" => "true" }))
        .to have_attributes(success?: false, stdout: %r{^failing +files +cannot be written to .*/tmp/profiles/cpu: })
    end

    it "exits with 1 if the extension cannot be loaded" do
      FileUtils.cp_r([SubprocessHelpers::EXE, SubprocessHelpers::LIB], ".")
      Dir.glob("lib/**/*.{so,bundle}").each { |file| File.unlink(file) }
      expect(doctor(exe: "exe"))
        .to have_attributes(status: have_attributes(exitstatus: 1), stdout: /^failing +extension +.*is not compiled/)
    end
  end
end
