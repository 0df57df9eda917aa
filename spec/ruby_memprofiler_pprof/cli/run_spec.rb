# frozen_string_literal: true

require "fileutils"
require "shellwords"
require "tmpdir"

RSpec.describe "memprofiler run" do
  around { |example| Dir.mktmpdir("with space") { |directory| Dir.chdir(directory) { example.run } } }

  let(:memprofiler) { SubprocessHelpers::MEMPROFILER }

  def run(*arguments, **keywords)
    run_command(*memprofiler, "run", *arguments, **keywords)
  end

  # Runs Ruby code, with options of `run`.
  def run_code(code, *options, **keywords)
    run(*options, "--", RbConfig.ruby, "-e", code, **keywords)
  end

  # Profiles with their names.
  def profiles
    Dir.glob("**/*.pprof").to_h { |name| [name, Pprof.decode(File.binread(name))] }
  end

  def kept(class_name)
    profiles.values.sum { |profile| profile.by_class[class_name].to_i }
  end

  describe "a command" do
    it "is profiled even if it ends before the interval does" do
      run_code("class Kept; end; KEPT = Array.new(20) { Kept.new }", "--rate", "1", "--interval", "1000")
      expect(kept("Kept")).to eq(20)
    end

    it "is profiled in a directory that the locale does not know" do
      Dir.mkdir("Ä")
      File.write("Ä/program.rb", "class Kept; end; KEPT = Kept.new")
      options = ["--quiet", "--rate", "1", "--pattern", "prö-%{pid}.pprof"]
      outcome = run(*options, RbConfig.ruby, File.join(Dir.pwd, "Ä/program.rb"), chdir: "Ä", env: { "LC_ALL" => "C" })
      expect([outcome.stderr, kept("Kept")]).to eq(["", 1])
    end

    it "replaces the wrapper: there is no further process" do
      reader, writer = IO.pipe
      pid = spawn(*memprofiler, "run", "--quiet", RbConfig.ruby, "-e", "print Process.pid", out: writer)
      writer.close
      Process.wait(pid)
      expect(reader.read).to eq(pid.to_s)
    end

    it "begins at the first argument that is not an option" do
      expect(run("--rate", "1", "echo", "--rate", "2").stdout).to eq("--rate 2\n")
    end

    it "passes its exit status on" do
      expect(run_code("exit 3").status.exitstatus).to eq(3)
    end

    it "receives signals, which end it as usual" do
      outcome = run_code("Process.kill(:TERM, Process.pid); sleep")
      expect(outcome.status.termsig).to eq(Signal.list["TERM"])
      expect(profiles.size).to eq(1)
    end

    it "ends immediately at a signal that cannot be handled" do
      expect(run_code("Process.kill(:KILL, Process.pid); sleep").status.termsig).to eq(Signal.list["KILL"])
    end

    it "exits with 127 if it is not found" do
      expect(run("no-such-command"))
        .to have_attributes(status: have_attributes(exitstatus: 127), stderr: /: command not found - no-such-command/)
    end

    it "exits with 126 if it cannot be run" do
      File.write("file", "")
      expect(run("./file")).to have_attributes(status: have_attributes(exitstatus: 126), stderr: /Permission denied/)
    end

    it "exits with 2 if it is missing" do
      expect(run("--rate", "1"))
        .to have_attributes(status: have_attributes(exitstatus: 2), stderr: /no command given, see .* run --help/)
    end

    it "may be a binstub" do
      File.write("stub", "#!#{RbConfig.ruby}\nclass Kept; end; KEPT = Kept.new\n", perm: 0o755)
      run("--rate", "1", "./stub")
      expect(kept("Kept")).to eq(1)
    end

    it "may be bundle exec, with a Gemfile that does not name the gem" do
      skip "bundler is not installed" unless Gem::Specification.find_all_by_name("bundler").any?

      File.write("Gemfile", "")
      File.write("program.rb", <<~RUBY)
        class Kept; end
        KEPT = Kept.new
        print defined?(Bundler).inspect, Gem.loaded_specs.key?("ruby_memprofiler_pprof"), ENV["BUNDLE_GEMFILE"]
      RUBY
      outcome = run("--rate", "1", "bundle", "exec", "ruby", "program.rb", env: { "BUNDLE_GEMFILE" => nil })
      expect(outcome.stdout).to eq(%("constant"false#{File.realpath("Gemfile")})), outcome.to_s
      expect(kept("Kept")).to eq(1)
    end

    it "is profiled once if the program starts the profiler, too" do
      code = <<~RUBY
        require "ruby_memprofiler_pprof"
        MemprofilerPprof.configure { |config| config.sample_rate = 0.5 }
        MemprofilerPprof.start
        print MemprofilerPprof.collectors.size, MemprofilerPprof.collector.sample_rate
      RUBY
      expect(run_code(code, "--rate", "0.25").stdout).to eq("10.25")
    end

    it "keeps what is in RUBYOPT" do
      expect(run_code("print $VERBOSE", env: { "RUBYOPT" => "-w" }).stdout).to eq("true")
    end
  end

  describe "at the end" do
    # What it says there.
    def note(code, *options, **keywords)
      run_code(code, *options, **keywords).stderr
    end

    it "says how to see the profile, on stderr only" do
      outcome = run_code("print Process.pid; exit 3")
      expect(outcome.stderr)
        .to match(%r{\Amemprofiler run: to see the profile: memprofiler report tmp/profiles/mem-\d+-\w+\.pprof\n\z})
      expect([outcome.stdout, outcome.status.exitstatus]).to eq([profiles.keys.first[/\d+/], 3])
    end

    # Of a program that has written these files.
    def note_of(*files)
      note("MemprofilerPprof.profiler.define_singleton_method(:files) { #{files} }")
    end

    it "names the last of several" do
      expect(note_of("a/1.pprof", "a/2.pprof"))
        .to eq("memprofiler run: to see the last profile: memprofiler report a/2.pprof\n")
    end

    it "names that of the CPU time, too" do
      stderr = note("MemprofilerPprof.profiler.define_singleton_method(:cpu_files) { ['c/1.pprof', 'c/2.pprof'] }")
      expect(stderr.lines.last).to eq("memprofiler run: to see the CPU time: memprofiler report c/2.pprof\n")
    end

    it "names that of the CPU time if there is no other" do
      expect(note("nil", "--cpu", "--no-files")).to match(%r{\A.* see the CPU time: memprofiler report tmp/.*pprof\n\z})
    end

    it "names the directory of as many as leaks needs" do
      seven, eight = [7, 8].map { |count| note_of(*Array.new(count) { |index| "a/#{index}.pb.gz" }) }
      expect(seven).to end_with(": memprofiler report a/6.pb.gz\n")
      expect(eight).to eq("memprofiler run: to see what grows in 8 profiles: memprofiler leaks a\n")
    end

    it "names the last if leaks does not find such names in a directory" do
      expect(note_of(*Array.new(8) { |index| "a/#{index}" })).to end_with(": memprofiler report a/7\n")
    end

    it "says it wherever the program is by then" do
      expect(note("Dir.chdir('/')", "--pattern", "a/b.pprof")).to end_with(": memprofiler report a/b.pprof\n")
    end

    it "quotes the name for a shell" do
      command = note("", "--pattern", "it's a.pprof")[/: (memprofiler report .*)/, 1]
      expect(Shellwords.split(command)).to eq(["memprofiler", "report", "it's a.pprof"])
    end

    it "says it once, whatever the program starts and forks" do
      said = note("fork { nil }; Process.wait; system(#{RbConfig.ruby.inspect}, '-e', '')")
      expect([said.lines.size, profiles.size]).to eq([1, 3])
    end

    it "says it of the program that this one becomes" do
      expect(note("exec(#{RbConfig.ruby.inspect}, '-e', '')").lines.size).to eq(1)
    end

    it "says nothing with --quiet" do
      expect([note("", "--quiet"), note("", "-q")]).to eq(["", ""])
    end

    it "says nothing if there is no profile" do
      expect(note("", "--start-paused", "--toggle-on", "URG")).to eq("")
    end

    it "lets the program close stderr" do
      expect(run_code("$stderr.close")).to be_success
    end
  end

  describe "options" do
    it "exist for every setting, and apply to the program" do
      # Each allows one of these.
      values = %w[cfp auto ruby URG 1 0.1 1048576 a/%{index} a=b http://a a:b]
      options = MemprofilerPprof::Configuration.settings.select(&:option).flat_map do |setting|
        next setting.option.sub("--", "--no-") if setting.type.boolean?

        [setting.option, values.find { |value| setting.type.parse(value) }]
      end
      outcome = run_code('print ENV.to_h.select { |name, _| name.start_with?("RUBY_MEMPROFILER") }', *options)
      expect(outcome.stdout.scan(/RUBY_MEMPROFILER_PPROF_\w+/))
        .to match_array(MemprofilerPprof::Configuration.settings.filter_map(&:variable))
    end

    it "take precedence over the environment" do
      outcome = run_code("print MemprofilerPprof.config.max_frames", "--max-frames", "7",
                         env: { "RUBY_MEMPROFILER_PPROF_MAX_FRAMES" => "9" })
      expect(outcome.stdout).to eq("7")
    end

    {
      ["--rate", "2"] => '--sample-rate must be a number from 0 to 1, got "2"',
      ["--dump-on", "KILL"] => "--dump-on must be a signal that can be handled, such as USR2",
      ["--pattern", "\xff.pprof"] => "--pattern must be a file name, in which %{pid}",
      ["--tags", "a=\xff"] => "--tags must be tags such as",
      ["--interval"] => "--interval needs a value, see memprofiler run --help"
    }.each do |options, message|
      it "are refused before anything runs if they are wrong: #{options.join(" ").scrub}" do
        outcome = run(*options)
        expect(outcome.stderr).to start_with("memprofiler: #{message}")
        expect([outcome.stdout, outcome.status.exitstatus]).to eq(["", 2])
      end
    end

    it "are suggested in place of unknown ones" do
      # Suggestions come from a gem.
      outcome = run_command(RbConfig.ruby, SubprocessHelpers::EXECUTABLE, "run", "--intervall", "1")
      expect(outcome.stderr).to start_with("memprofiler: unknown option --intervall, did you mean --interval?")
      expect([outcome.stdout, outcome.status.exitstatus]).to eq(["", 2])
    end
  end

  describe "signals" do
    # Starts a program that reports when it is ready, and yields its pid and its further output.
    def with_program(*options, code: "")
      reader, writer = IO.pipe
      pid = spawn(*memprofiler, "run", "--quiet", "--interval", "1000", "--rate", "1", *options, "--", RbConfig.ruby,
                  "-e", "class Kept; end; KEPT = Kept.new; #{code}; $stdout.syswrite('.'); sleep", out: writer)
      writer.close
      reader.read(1)
      yield pid, reader
    ensure
      Process.kill(:TERM, pid)
      Process.wait(pid)
    end

    def wait_for_files(count)
      wait_until(what: "file #{count}") { profiles.size >= count }
    end

    it "write a profile immediately" do
      with_program("--dump-on", "URG") do |pid|
        Process.kill(:URG, pid)
        wait_for_files(1)
        expect(kept("Kept")).to eq(1)
        Process.kill(:URG, pid)
        wait_for_files(2)
      end
      expect(profiles.size).to eq(3)
    end

    it "start a paused program's profiler, and stop it again" do
      code = <<~RUBY
        class After; end
        trap(:USR1) { (AFTER = After.new) && $stdout.syswrite("!") }
        Thread.new { (sleep 0.01 until MemprofilerPprof.running?) || $stdout.syswrite("!") }
      RUBY
      with_program("--start-paused", "--toggle-on", "URG", code: code) do |pid, said|
        Process.kill(:URG, pid)
        said.read(1)
        Process.kill(:USR1, pid)
        said.read(1)
        expect(profiles).to be_empty
        Process.kill(:URG, pid)
        wait_for_files(1)
        expect([kept("Kept"), kept("After")]).to eq([0, 1])
      end
      expect(profiles.size).to eq(1)
    end

    it "leave a paused program without a profile" do
      expect(run_code("print MemprofilerPprof.running?", "--start-paused").stdout).to eq("false")
      expect(profiles).to be_empty
    end

    it "write files for a paused program that starts its profiler" do
      run_code("MemprofilerPprof.start; KEPT = Object.new", "--start-paused", "--toggle-on", "URG", "--rate", "1")
      expect(profiles.size).to eq(1)
    end

    it "work in a program that chains them" do
      with_program("--dump-on", "USR2", code: "before = trap(:USR2) { before.call }") do |pid|
        Process.kill(:USR2, pid)
        wait_for_files(1)
      end
    end

    it "warn when there is nothing to write" do
      code = "reader, writer = IO.pipe; STDERR.reopen(writer); Process.kill(:URG, Process.pid); print reader.gets"
      expect(run_code(code, "--start-paused", "--dump-on", "URG").stdout)
        .to match(/no profile: the profiler is not running/)
    end
  end

  describe "--cpu" do
    # Each process prints how much CPU time its work takes. It works until there were some ticks: beside other busy
    # processes the kernel may send none for a while.
    code = <<~'RUBY'
      def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      def ticks = MemprofilerPprof::CPU.stats[:signals]
      def work
        deadline = cpu + 0.2
        last = ticks + 5
        1000.times { nil } while MemprofilerPprof::CPU.running? && ticks < last || cpu < deadline
      end
      def report
        before = cpu
        work
        $stdout.syswrite("#{cpu - before}\n")
      end
      report
      fork { report }
      Process.wait
    RUBY

    # Seconds of CPU time of a method in each file.
    def seconds_in(name)
      files = profiles.select { |file, _| file.include?("/cpu/") }.values
      files.map do |profile|
        profile.samples.select { |sample| sample.names.include?(name) }.sum { |sample| sample[:cpu] } / 1e9
      end
    end

    it "writes where the CPU time goes, of each process" do
      outcome = run_code(code, "--cpu", "--cpu-frequency", "1000", "--interval", "1000")
      expect(outcome).to be_success, outcome.to_s
      # A tick stands for the time since the one before, and there may be five. With its parent's, a child would have
      # twice as much.
      bounds = outcome.stdout.lines.map(&:to_f).map { |worked| be_between(worked * 0.5, worked * 1.5) }
      expect(seconds_in("Object#work")).to match_array(bounds)
      expect(Dir.glob("tmp/profiles/mem-*").size).to eq(2)
    end

    it "puts the files where asked" do
      run_code(code, "--cpu", "--cpu-pattern", "a-%{pid}.pb.gz")
      expect(Dir.glob("*.pb.gz").size).to eq(2)
    end

    it "is off by default" do
      run_code(code)
      expect(seconds_in("Object#work")).to eq([])
    end

    it "lets the program run if there are no timers" do
      outcome = run_code("MemprofilerPprof::CPU.start rescue puts $!.message", "--cpu")
      expect(outcome.stdout).to match(/being taken already/)
    end
  end
end
