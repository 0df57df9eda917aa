# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/by_pid"
require "tmpdir"

RSpec.describe "memprofiler stack", if: RUBY_PLATFORM.start_with?("x86_64-linux") do
  # The threads of a process, as the tool sees them.
  def threads_of(pid, *options)
    JSON.parse(MemprofilerPprof::ByPid.run("stack", pid, "json", *options)).fetch("threads")
  end

  def main_of(pid, *options)
    threads_of(pid, *options).find { |thread| thread["main"] }
  end

  def names_of(thread)
    thread["frames"].map { |frame| frame["name"] }
  end

  # Runs Ruby code until the block returns. The code says that it got somewhere by a line.
  def with_ruby(code, *options)
    io = IO.popen([RbConfig.ruby, *options, "-e", "$stdout.sync = true; #{code}"], "r+")
    io.gets
    yield io.pid, io
  ensure
    Process.kill(:KILL, io.pid)
    io.close
  end

  def stack(*arguments)
    run_command(*SubprocessHelpers::MEMPROFILER, "stack", *arguments)
  end

  it "reads a process that has mapped a file whose name is no text" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "\xFF")
      File.binwrite(path, "x" * 4096)
      code = <<~RUBY
        $buffer = IO::Buffer.map(File.open(ARGV[0]), nil, 0, IO::Buffer::READONLY)
        def here = $stdout.puts.then { $stdout.flush && sleep }
        here
      RUBY
      io = IO.popen([RbConfig.ruby, "-W0", "-e", code, path])
      io.gets
      expect(names_of(main_of(io.pid))).to include("Object#here")
    ensure
      Process.kill(:KILL, io.pid)
      io.close
    end
  end

  describe "a process in a PID namespace of its own" do
    # @yieldparam pid [Integer] of its main thread, which waits, and has threads
    def in_namespace
      by = %w[unshare --pid --fork --kill-child]
      skip "namespaces cannot be made here" unless system(*by, "true", %i[out err] => IO::NULL)
      io = IO.popen([*by, RbConfig.ruby, "-e", "Thread.new { sleep }; $stdout.sync = true; puts; sleep"])
      io.gets
      yield Integer(File.read("/proc/#{io.pid}/task/#{io.pid}/children").split.first)
    ensure
      Process.kill(:KILL, io.pid) if io
      io&.close
    end

    [[], %w[pause]].each do |options|
      it "is known by thread what it does#{", while it is stopped" if options.any?}" do
        in_namespace { |pid| wait_until { threads_of(pid, *options).map { |t| t["activity"] } == %w[waits waits] } }
      end
    end
  end

  describe "the frames of a scenario" do
    around do |example|
      Names.observer = -> { threads_of(Process.pid) }
      example.run
    ensure
      Names.observer = nil
      Object.send(:remove_const, :App)
      Object.send(:remove_method, :at_top) if Object.private_method_defined?(:at_top)
    end

    # The stack outside of Names.mark, as a profile has it.
    def profiled(definition, call)
      profile = Dir.mktmpdir do |directory|
        file = File.join(File.realpath(directory), "scenario.rb")
        File.write(file, "module App\n  #{definition}\n  Names.run do\n    #{call}\n  end\nend\n")
        profile_of { load(file) }
      end
      sample = profile.samples.find { |each| each.labels["class"] == "Names::Marker" }
      sample.frames.drop(2).map { |frame| "#{frame.name} #{frame.file}:#{frame.line}" }
    end

    # The same, as it was seen from outside. Other threads may wait for the one that has called it.
    def observed
      marked = Names.observed.map { |thread| thread["frames"].drop_while { |frame| frame["name"] != "Names.mark" } }
      marked.reject(&:empty?).first.drop(1).map { |frame| frame.values_at("name", "file", "line") }
            .map { |name, file, line| "#{name} #{file}:#{line}" }
    end

    Names.scenarios.each do |description, (definition, call)|
      it "are those of a profile for #{description}" do
        inside = profiled(definition, call)
        expect(observed.join("\n")).to eq(inside.join("\n"))
      end
    end
  end

  describe "a thread" do
    it "has its name, number and activity" do
      with_ruby("Thread.new { Thread.current.name = 'worker'; puts; sleep }; sleep") do |pid|
        wait_until { threads_of(pid).all? { |thread| thread["activity"] == "waits" } }
        main, worker = threads_of(pid)
        expect(main).to include("tid" => pid, "name" => nil, "main" => true)
        expect(worker).to include("name" => "worker", "main" => false, "gvl" => false)
        expect(names_of(worker)).to eq(["Kernel#sleep", "block in <main>"])
      end
    end

    it "has the GVL if it runs" do
      with_ruby("puts; loop { }") do |pid|
        expect(main_of(pid)).to include("gvl" => true, "activity" => "has the GVL, runs")
      end
    end

    it "waits for the GVL if another one has it" do
      with_ruby("t = Thread.new { loop { } }; puts; loop { }") do |pid|
        activities = threads_of(pid, "pause").map { |thread| thread["activity"] }
        expect(activities).to include("waits for the GVL")
      end
    end

    # Linux cuts it after 14 bytes.
    {
      "waits" => ["puts; sleep", []],
      "has the GVL, runs" => ["puts; loop { }", %w[pause]]
    }.each do |activity, (code, options)|
      it "#{activity}#{", while it is stopped" if options.any?}, also if its name is cut inside a character" do
        with_ruby("Thread.new { Thread.current.name = 'нагрузка'; #{code} }; sleep") do |pid|
          wait_until { threads_of(pid, *options).last["activity"] == activity }
        end
      end
    end

    it "of another Ractor is shown, too" do
      with_ruby("Warning[:experimental] = false; Ractor.new { sleep }; puts; sleep") do |pid|
        other = wait_until { threads_of(pid).find { |thread| !thread["main_ractor"] } }
        expect(other["main"]).to be(false)
      end
    end
  end

  # A program whose stack never is the same for long.
  def busy
    "def odd(n) = n < 1 ? 0 : even(n - 1); def even(n) = n < 1 ? 1 : odd(n - 1); puts; loop { odd(30) }"
  end

  it "never shows calls that do not go together" do
    with_ruby(busy) do |pid|
      wait_until { names_of(main_of(pid)).include?("Object#odd") }
      shown = Array.new(50) { main_of(pid) }.map { |thread| names_of(thread).reverse }
      whole = ["<main>", "Kernel#loop", "block in <main>", *%w[Object#odd Object#even].cycle.first(31)]
      expect(shown).to all(satisfy { |names| names == whole.first(names.size) })
    end
  end

  it "has complete stacks if the process is stopped, which goes on afterwards" do
    with_ruby(busy) do |pid|
      wait_until { names_of(main_of(pid)).include?("Object#odd") }
      shown = Array.new(50) { main_of(pid, "pause") }
      expect(shown.map { |thread| thread["complete"] }).to all(be(true))
      expect(File.read("/proc/#{pid}/status")).to match(/^State:\t[RS]/)
    end
  end

  def traced?(pid)
    !File.read("/proc/#{pid}/status").match?(/^TracerPid:\t0$/)
  end

  it "gives up, and lets everything go, if the kernel does not stop a thread" do
    # The parent of a child that clone has made with CLONE_VFORK is in state D until that ends, with it (prctl).
    code = "puts; syscall(56, 0x4000 | 17, 0, 0, 0, 0).zero? and syscall(157, 1, 9, 0, 0, 0).zero? and syscall(34)"
    with_ruby(code) do |pid|
      wait_until { File.read("/proc/#{pid}/stat").include?(") D ") }
      expect(stack("--pause", pid.to_s).stderr)
        .to match(/\Amemprofiler: thread #{pid} of process #{pid} did not stop within 3 s: .* in state D/)
      expect(traced?(pid)).to be(false)
    end
  end

  it "says who traces a thread that cannot be stopped for that" do
    with_ruby("Thread.new { Thread.current.name = 'нагрузка'; puts; sleep }; sleep") do |pid|
      tid = threads_of(pid).last["tid"]
      # PTRACE_SEIZE
      with_ruby("syscall(101, 0x4206, #{tid}, 0, 0); puts; sleep") do |tracer|
        message = "memprofiler: thread #{tid} of process #{pid} is already traced, by process #{tracer}: " \
                  "leave out --pause\n"
        expect(stack("--pause", pid.to_s).stderr).to eq(message)
      end
    end
  end

  it "takes no signal from a process that is stopped" do
    with_ruby("trap(:USR1) { $stdout.syswrite('.') }; puts; loop { }") do |pid, io|
      sent = 0
      sender = Thread.new do
        loop do
          Process.kill(:USR1, pid)
          sent += 1
          # A signal that is lost is never answered.
          expect(io.wait_readable(60) && io.readpartial(1)).to eq(".")
        end
      end
      MemprofilerPprof::ByPid.run("watch", pid, 3, 1000, "pause")
      before = sent
      wait_until { sent > before + 10 }
      sender.kill.join
    end
  end

  it "prints text" do
    with_ruby("puts; sleep") do |pid|
      wait_until { main_of(pid)["activity"] == "waits" }
      expect(stack(pid.to_s).stdout).to eq(<<~TEXT)
        process #{pid}, Ruby #{RUBY_VERSION}, threads: 1

        thread #{pid} (main): waits
          Kernel#sleep -e:1
          <main> -e:1
      TEXT
    end
  end

  it "reads a process that has the profiler" do
    with_ruby("MemprofilerPprof.start; puts; sleep", *load_path_options, "-rruby_memprofiler_pprof") do |pid|
      wait_until { main_of(pid)["activity"] == "waits" }
      expect(names_of(main_of(pid))).to eq(["Kernel#sleep", "<main>"])
    end
  end

  describe "with --watch" do
    # The profile of a program, and the tool's comments.
    def watch(code, *options)
      with_ruby(code) do |pid|
        outcome = stack("--watch", "--seconds", "0.5", "-o", "-", *options, pid.to_s)
        expect(outcome).to be_success, outcome.stderr
        return Pprof.decode(outcome.stdout.b), pid
      end
    end

    def sums(profile, label)
      profile.samples.each_with_object(Hash.new(0)) { |sample, sums| sums[sample.labels[label]] += sample["wall"] }
    end

    it "writes a profile of wall time, of each thread its whole duration" do
      profile, = watch("q = Queue.new; Thread.new { Thread.current.name = 'worker'; q << 1; sleep }; q.pop; puts; gets")
      expect(profile.sample_types.map(&:to_a)).to eq([%w[samples count], %w[wall nanoseconds]])
      expect(sums(profile, "thread").keys).to contain_exactly("main", "worker")
      expect(sums(profile, "thread").values.uniq.size).to eq(1)
      expect(sums(profile, "thread")["main"]).to be_within(5).percent_of(profile.duration_nanos)
    end

    it "names the calls" do
      profile, = watch("def idle = sleep; puts; idle")
      expect(profile.samples.map(&:names).uniq).to include(["Kernel#sleep", "Object#idle", "<main>"])
    end

    it "says what the threads do" do
      profile, = watch("puts; loop { }")
      expect(sums(profile, "activity").max_by(&:last).first).to eq("has the GVL, runs")
    end

    it "ends with the process" do
      with_ruby("puts; sleep 0.5; exit!") do |pid|
        outcome = stack("--watch", "--seconds", "600", "-o", "-", pid.to_s)
        # Or at once, if it ended before the tool began.
        expect(outcome.success? || outcome.stderr.include?("process #{pid}")).to be(true), outcome.to_s
      end
    end

    it "keeps what it has read if the process ends while it is stopped again and again" do
      with_ruby("puts; sleep") do |pid|
        watching = Thread.new { stack("--watch", "--pause", *%w[--seconds 600 --rate 1000 -o -], pid.to_s) }
        # Once it was stopped a second time, something has been read.
        [true, false, true].each { |stopped| wait_until { traced?(pid) == stopped } }
        Process.kill(:KILL, pid)
        outcome = watching.value
        expect([outcome.success?, outcome.stderr]).to eq([true, "memprofiler: process #{pid} has ended\n"])
        expect(Pprof.decode(outcome.stdout.b).samples.map(&:names)).to include(["Kernel#sleep", "<main>"])
      end
    end

    %i[INT TERM].each do |signal|
      it "ends with what it has at #{signal}" do
        with_ruby("puts; sleep") do |pid|
          command = [*SubprocessHelpers::MEMPROFILER, "stack", "--watch", "-o", "-"]
          IO.popen([own_environment, *command, "--seconds", "600", pid.to_s], "rb", pgroup: true) do |output|
            wait_until { catches_term?(tool_of(output.pid)) }
            Process.kill(signal, output.pid)
            expect(output.wait_readable(60)).to be_truthy
            expect(Pprof.decode(output.read).comments).to include("pid=#{pid}")
          ensure
            Process.kill(:KILL, -output.pid)
          end
        end
      end
    end

    # @return [String, nil] the id of the process that process `pid` has started
    def tool_of(pid)
      File.read("/proc/#{pid}/task/#{pid}/children").split.first
    end

    # Whether it is the tool, and has got that far.
    def catches_term?(pid)
      pid && File.readlink("/proc/#{pid}/exe").end_with?("memprofiler-attach") &&
        File.read("/proc/#{pid}/status")[/^SigCgt:\t(\h+)/, 1].hex[Signal.list["TERM"] - 1] == 1
    end

    it "writes a file apart from those of the heap if none is named" do
      Dir.mktmpdir do |directory|
        with_ruby("puts; sleep") do |pid|
          run_command(*SubprocessHelpers::MEMPROFILER, "stack", "--watch", "--seconds",
                      "0.1", pid.to_s, chdir: directory)
          expect(Dir.glob("**/*.pprof", base: directory)).to match([%r{\Atmp/profiles/wall/stack-#{pid}-[^/]*\z}])
        end
      end
    end

    { "--seconds without it" => [%w[--seconds 1 1], "--seconds needs --watch"],
      "JSON" => [%w[--watch --json 1], "--json is not for --watch"],
      "a time that is none" => [%w[--watch --seconds 0 1],
                                "invalid argument: --seconds 0, must be in 0.001..1000000, see memprofiler stack"],
      "a rate that is none" => [%w[--watch --rate 2e6 1], "invalid argument: --rate 2000000, must be in 0.001..1"] }
      .each do |what, (arguments, message)|
      it "refuses #{what}" do
        expect(stack(*arguments).stderr).to start_with("memprofiler: #{message}")
      end
    end
  end

  describe "a core file" do
    before do
      pattern = File.read("/proc/sys/kernel/core_pattern")
      skip "this machine puts core files elsewhere" if pattern.start_with?("|", "/")
    end

    # The threads of a program when it crashed, as JSON says.
    def crash(code)
      Dir.mktmpdir do |directory|
        pid = spawn(RbConfig.ruby, "-e", code, chdir: directory, rlimit_core: Process::RLIM_INFINITY)
        Process.wait(pid)
        outcome = stack("--json", Dir[File.join(directory, "*")].first)
        expect(outcome).to be_success, outcome.stderr
        return JSON.parse(outcome.stdout), pid
      end
    end

    it "has the stacks of all threads at the crash" do
      code = <<~RUBY
        def crash = Process.kill(:ABRT, Process.pid)
        queue = Queue.new
        Thread.new { Thread.current.name = "worker"; queue << 1; sleep }
        queue.pop
        trap(:ABRT, "SYSTEM_DEFAULT")
        [1].each { crash }
      RUBY
      report, pid = crash(code)
      expect(report).to include("pid" => nil, "ruby" => RUBY_VERSION)
      main, worker = report["threads"]
      expect(names_of(main)).to eq(["Process.kill", "Object#crash", "block in <main>", "Array#each", "<main>"])
      expect(main).to include("tid" => pid, "gvl" => true)
      expect(worker).to include("name" => "worker", "gvl" => false)
      expect(names_of(worker).last).to eq("block in <main>")
    end
  end

  { "no process" => [[], "no process given"],
    "what is neither PID nor file" => [%w[x], "x: No such file"],
    "a file that is no core file" => [[__FILE__], "#{__FILE__}: no core file"],
    "to stop a core file" => [%w[--pause core], "--pause needs a PID, not core"],
    "a PID of 0" => [%w[0], "0 is no PID"],
    "a PID that nothing has" => [%w[999999999], "there is no process 999999999"],
    "an option that there is not" => [%w[--x 1], "unknown option --x"] }.each do |what, (arguments, message)|
    it "refuses #{what}" do
      outcome = stack(*arguments)
      expect([outcome.status.exitstatus, outcome.stderr]).to match([2, start_with("memprofiler: #{message}")])
    end
  end

  it "refuses a process that is no Ruby" do
    pid = spawn("sleep", "60")
    expect(stack(pid.to_s).stderr).to include("process #{pid} is no Ruby")
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end
