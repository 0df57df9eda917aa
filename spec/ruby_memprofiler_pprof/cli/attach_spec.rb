# frozen_string_literal: true

require "socket"

RSpec.describe "memprofiler attach", if: Attaching.possible? do
  include Attaching

  threads = "Thread.list.map { |thread| thread.name.to_s }.grep(/memprofiler/)"

  def refused(*arguments)
    outcome = memprofiler("attach", *arguments)
    expect(outcome.status.exitstatus).to eq(2), outcome.to_s
    outcome.stderr
  end

  def answer(port)
    TCPSocket.open("127.0.0.1", port) do |socket|
      socket.puts("x")
      socket.read
    end
  end

  {
    "allocates" => "loop { Array.new(10) { +'x' }; sleep 0.0001 }",
    "computes" => "loop { 1 + 1 }",
    "sleeps" => "sleep",
    "waits for a client" => "require 'socket'; TCPServer.new('127.0.0.1', 0).accept",
    "waits for a pipe" => "pipe = IO.pipe; IO.select([pipe.first])",
    "waits for threads" => "Array.new(4) { Thread.new { loop { +'x'; sleep 0.001 } } }.each(&:join)",
    "waits for a process" => "system('sleep 1000')"
  }.each do |name, code|
    it "profiles a process that #{name}, and leaves nothing behind", :slow do
      # script/torture_attach goes through many cycles.
      with_program(code) do |program|
        expect_cycles(program, 3)
        wait_until { program.ask(threads).empty? }
        expect(program.ask("MemprofilerPprof.collectors")).to eq([])
      end
    end
  end

  it "needs no RubyGems" do
    with_program("loop { +'x'; sleep 0.001 }", "--disable-gems", answers: false) do |program|
      memprofiler!("attach", "--rate", 1, program.pid)
      wait_until { profile(program.pid).samples.any? }
      memprofiler!("detach", program.pid)
    end
  end

  it "makes a verbose program warn of nothing" do
    with_program("require 'stringio'; $stderr = StringIO.new; sleep", "-w") do |program|
      expect_cycles(program, 1)
      expect(program.ask("$stderr.string")).to eq("")
    end
  end

  it "works with another process title" do
    with_program("$0 = 'puma: (deleted) [x]'; sleep") { |program| expect_cycles(program, 2) }
  end

  it "works under Bundler, whose Gemfile does not name the gem" do
    skip "bundler is not installed" unless Gem::Specification.find_all_by_name("bundler").any?
    Dir.mktmpdir do |directory|
      File.write("#{directory}/Gemfile", "")
      env = { "BUNDLE_GEMFILE" => "#{directory}/Gemfile" }
      with_program("sleep", "-rbundler/setup", env: env) { |program| expect_cycles(program, 2) }
    end
  end

  describe "to a process in one C call" do
    # Is asked for in vain, until the tool for it gets a signal.
    # @return [String] what was printed
    def interrupted(program, signal, to:)
      IO.popen([own_environment, *command("attach", "--timeout", 600, program.pid)], err: %i[child out],
                                                                                     pgroup: true) do |output|
        tools = nil
        wait_until { tools = tools_of(output.pid) and Dir.glob("#{directory(program)}/attach.rb").any? }
        # So that the process has been asked for the job.
        sleep 1
        Process.kill(signal, to == :tool ? tools.first : -output.pid)
        output.read
      ensure
        # Else closing the pipe would wait for it.
        Process.kill(:KILL, -output.pid)
      end
    end

    def tools_of(pid)
      tools = File.read("/proc/#{pid}/task/#{pid}/children").split.map { |child| Integer(child) }
      tools if tools.any? && File.read("/proc/#{tools.first}/cmdline").include?("require")
    rescue SystemCallError
      # The one before, which only looks, has just ended.
      nil
    end

    def directory(program)
      Dir.glob("/tmp/memprofiler-attach-#{program.pid}-*").first
    end

    # Is in a C call that keeps the GVL until there is the file `path`, and then prints whether it has the profiler.
    def busy_until(path)
      skip CompiledExtension.missing if CompiledExtension.missing
      code = <<~RUBY
        require #{CompiledExtension.new("holds_gvl").library.delete_suffix(".so").dump}
        puts "begins"
        HoldsGvl.until_there_is(#{path.dump}, [], 600, 0)
        sleep 0.1
        puts defined?(MemprofilerPprof).inspect
        sleep
      RUBY
      with_program(code, answers: false) do |program|
        program.gets
        yield program
      end
    end

    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    it "says so, and does nothing then or later" do
      busy_until(File.expand_path("ends")) do |program|
        expect(refused("--timeout", 1, program.pid)).to include("busy in one C call").and include("--timeout")
        FileUtils.touch("ends")
        expect(program.gets).to eq("nil")
      end
    end

    # Else anybody could make a directory of that name, from which the process would require a file.
    it "looks for nothing any more after Ctrl-C" do
      busy_until(File.expand_path("ends")) do |program|
        name = nil
        Thread.new { wait_until { name = directory(program) } }
        interrupted(program, :INT, to: :all)
        expect(File.exist?(name)).to be(false)
        Dir.mkdir(name)
        File.write("#{name}/attach.rb", "File.write(#{File.expand_path("required").dump}, '')")
        FileUtils.touch("ends")
        program.gets
        expect(File.exist?("required")).to be(false)
      ensure
        FileUtils.rm_rf(name)
      end
    end

    it "keeps the name of what it may still look for" do
      busy_until(File.expand_path("ends")) do |program|
        expect(interrupted(program, :KILL, to: :tool)).to include("may look into the directory /tmp/memp")
        expect([File.stat(directory(program)).mode & 0o777, Dir.children(directory(program))]).to eq([0o700, []])
      ensure
        FileUtils.rm_rf(directory(program))
      end
    end

    it "waits until that ends" do
      busy_until(File.expand_path("ends")) do |program|
        attaching = Thread.new { memprofiler!("attach", "--timeout", 120, program.pid) }
        wait_until { Dir.glob("/tmp/memprofiler-attach-#{program.pid}-*").any? }
        FileUtils.touch("ends")
        expect(attaching.value).to include("attached in")
      end
    end
  end

  it "changes nothing about what a sleep returns" do
    code = <<~RUBY
      $woken = []
      pipe = IO.pipe
      Thread.new { loop { $woken << :early if IO.select([pipe.first], nil, nil, 0.01) } }
      loop { started = Process.clock_gettime(Process::CLOCK_MONOTONIC); sleep 0.2
             $woken << :early if Process.clock_gettime(Process::CLOCK_MONOTONIC) - started < 0.2 }
    RUBY
    with_program(code) do |program|
      expect_cycles(program, 5)
      expect(program.ask("$woken.count(:early)")).to eq(0)
    end
  end

  it "passes settings on" do
    with_program("sleep") do |program|
      Dir.mktmpdir do |directory|
        memprofiler!("attach", "--rate", 0.5, "--tags", "a=1", "--socket", "#{directory}/memprofiler.sock", program.pid)
        expect(program.ask("MemprofilerPprof.config.sample_rate")).to eq(0.5)
        expect(program.ask("MemprofilerPprof.config.tags")).to include("a" => "1", "attached_at" => /\A\d{4}-.*Z\z/)
        expect(File.stat("#{directory}/memprofiler.sock").mode & 0o777).to eq(0o600)
        memprofiler!("detach", program.pid)
      end
    end
  end

  it "attaches once" do
    with_program("sleep") do |program|
      memprofiler!("attach", program.pid)
      expect(refused(program.pid)).to include("has the profiler already", "memprofiler top #{program.pid}")
    end
  end

  it "does not touch a profiler that the program has started" do
    with_program("MemprofilerPprof.start; sleep", *load_path_options, "-rruby_memprofiler_pprof") do |program|
      expect(refused(program.pid)).to include("runs already as the program has started it")
      expect(program.ask("MemprofilerPprof.running?")).to be(true)
    end
  end

  it "prints no commands to the terminal that the process answers with", :aggregate_failures do
    with_program('module MemprofilerPprof; VERSION = "\e[2J"; end; sleep') do |program|
      expect(refused(program.pid)).to include("it has loaded version ?[2J of this gem")
    end
    with_program('module MemprofilerPprof; module Attached; def self.start(*) = "/\e[2J"; end; end; sleep') do |program|
      expect(memprofiler!("attach", program.pid)).to end_with("\nsocket: /?[2J\n")
    end
  end

  it "refuses a stopped process" do
    with_program("sleep") do |program|
      Process.kill(:STOP, program.pid)
      wait_until { File.read("/proc/#{program.pid}/stat").match?(/\) T /) }
      expect(refused(program.pid)).to include("kill -CONT #{program.pid} first")
    ensure
      Process.kill(:CONT, program.pid)
    end
  end

  it "leaves alone a process whose VM is gone" do
    skip CompiledExtension.missing if CompiledExtension.missing
    Dir.mktmpdir do |directory|
      gone, ends = %w[gone ends].map { |name| "#{directory}/#{name}" }
      require_it = "require #{CompiledExtension.new("holds_gvl").library.delete_suffix(".so").dump}"
      io = IO.popen([RbConfig.ruby, "-e", "#{require_it}; HoldsGvl.outlive(#{gone.dump}, #{ends.dump})"])
      wait_until { File.exist?(gone) }
      expect(refused(io.pid)).to include("process #{io.pid} is ending")
      FileUtils.touch(ends)
      io.close
      expect(Process.last_status).to be_success
    end
  end

  it "refuses a thread, a missing process, and what is no Ruby", :aggregate_failures do
    with_program("sleep") do |program|
      thread = Dir.children("/proc/#{program.pid}/task").map(&:to_i).max
      expect(refused(thread)).to include("is a thread of process #{program.pid}")
    end
    expect(refused(2_147_483_647)).to include("there is no process")
    sleeper = spawn("sleep", "1000")
    expect(refused(sleeper)).to include("runs no CRuby")
    Process.kill(:KILL, sleeper)
    wait_until { File.read("/proc/#{sleeper}/stat").match?(/\) Z /) }
    expect(refused(sleeper)).to include("has ended")
    Process.wait(sleeper)
  end

  it "refuses words that are no PID" do
    expect([refused("puma"), refused, refused("1", "2")])
      .to match([/puma is no PID/, /exactly one PID/, /exactly one PID/])
  end

  it "reports a socket that cannot be opened, and takes the profiler away" do
    with_program("$stderr.reopen(IO::NULL); sleep") do |program|
      expect(refused("--socket", "/dev/null/memprofiler.sock", program.pid))
        .to match(%r{could not open its socket /dev/null/memprofiler\.sock: Not a directory.*; --socket names another$})
      expect(program.ask("[MemprofilerPprof.running?, MemprofilerPprof.collectors]")).to eq([false, []])
    end
  end

  it "leaves no settings behind if it is refused" do
    with_program("trap('USR1', 'IGNORE'); sleep") do |program|
      expect(refused("--no-enabled", "--dump-on", "USR1", program.pid)).to include("the setting enabled is false")
      expect(program.ask("trap('USR1', 'IGNORE')")).to eq("IGNORE")
      memprofiler!("attach", program.pid)
    end
  end

  it "refuses the name of a socket that would not be found by the PID" do
    expect(refused("--socket", "/tmp/mem/app.sock", Process.pid))
      .to include("/tmp/mem/app.sock would not be found by the PID: the socket's name must contain memprof or")
  end

  it "reaches a process with a /tmp of its own" do
    skip "this checkout is below /tmp" if SubprocessHelpers::LIB.start_with?("/tmp/")
    by = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /tmp && exec "$@"', "sh"]
    skip "namespaces cannot be made here" unless system(*by, "true", %i[out err] => IO::NULL)
    with_program("loop { +'x'; sleep 0.001 }", by: by) do |program|
      expect_cycles(program, 2)
      expect(Dir.glob("/tmp/memprofiler-#{program.pid}*")).to eq([])
    end
  end

  it "refuses a process that cannot see the gem" do
    skip "only root can" unless Process.uid.zero?
    with_program("Dir.chroot('/var'); Dir.mkdir('/tmp') unless Dir.exist?('/tmp'); sleep") do |program|
      expect(refused(program.pid)).to include("cannot see", "in its container")
    end
  end

  it "serves a process of another user, to root" do
    skip "only root can" unless Process.uid.zero?
    with_program("Process::Sys.setgid(65_534); Process::Sys.setuid(65_534); sleep") do |program|
      skip "the process cannot read the gem" unless program.ask("File.readable?(#{SubprocessHelpers::LIB.dump})")
      # Another user's process is not dumpable after a change of its user, so its files belong to root.
      memprofiler!("attach", program.pid)
      expect(program.ask("MemprofilerPprof.running?")).to be(true)
    end
  end

  describe "detach" do
    it "refuses a process without the profiler" do
      with_program("sleep") do |program|
        expect(memprofiler("detach", program.pid).stderr).to include("does not have the profiler")
      end
    end
  end

  describe "the PID as an address" do
    it "stands for the process's socket" do
      with_program("loop { +'x'; sleep 0.001 }") do |program|
        memprofiler!("attach", "--rate", 1, program.pid)
        expect(JSON.parse(memprofiler!("top", "--once", "--json", program.pid)).dig("totals", "pid")).to eq(program.pid)
        expect(memprofiler!("memory", program.pid)).to include(" resident", "\nAttached at 2")
        expect(memprofiler!("why", program.pid)).to include("Attached at")
      end
    end

    it "leads to no other process, whatever is where the socket's file was" do
      Dir.mktmpdir do |directory|
        path = "#{directory}/mem-1.sock"
        with_program("require 'socket'; $server = UNIXServer.new(#{path.dump}); puts; sleep") do |program|
          program.gets
          File.unlink(path)
          other = UNIXServer.new(path)
          expect(memprofiler("dump", "-o", "-", program.pid).stderr)
            .to include("process #{Process.pid} listens there, not process #{program.pid}")
        ensure
          other&.close
        end
      end
    end

    it "is refused at once if the process is stopped" do
      with_program("sleep") do |program|
        memprofiler!("attach", program.pid)
        Process.kill(:STOP, program.pid)
        wait_until { File.read("/proc/#{program.pid}/stat").match?(/\) T /) }
        [%w[top --once], %w[memory], %w[dump -o -], %w[record]].each do |command|
          expect(memprofiler(*command, program.pid).stderr).to include("stopped: kill -CONT #{program.pid} first")
        end
      end
    end

    it "is refused without the profiler" do
      with_program("sleep") do |program|
        expect(memprofiler("top", "--once", program.pid).stderr).to include("memprofiler attach #{program.pid}")
      end
    end

    it "is refused with the profiler, but without a socket" do
      with_program("MemprofilerPprof.start; sleep", *load_path_options, "-rruby_memprofiler_pprof") do |program|
        expect(memprofiler("top", program.pid).stderr)
          .to include("process #{program.pid} has loaded this gem, but has no socket, or one whose name does not ")
      end
    end
  end

  describe "record" do
    it "writes a profile, and leaves nothing behind" do
      with_program("loop { +'x'; sleep 0.001 }") do |program|
        Dir.mktmpdir do |directory|
          memprofiler!("record", "--rate", 1, "--seconds", 1, "-o", "#{directory}/a.pprof", program.pid)
          expect(memprofiler!("report", "#{directory}/a.pprof")).to include("Attached at", "-e:")
        end
        expect(program.ask("MemprofilerPprof.running?")).to be(false)
      end
    end

    { "memory" => %w[--seconds 1000], "CPU time" => %w[--cpu --seconds 60] }.each do |what, options|
      it "says at once that the process has ended, of whose #{what} there is no profile" do
        with_program("sleep", answers: false) do |program|
          Dir.mktmpdir do |directory|
            printed = printed_by_record(*options, "-o", "#{directory}/a.pprof", program.pid) do
              Process.kill(:KILL, program.pid)
            end
            expect(printed).to end_with("process #{program.pid} has ended before the time was up: no profile\n")
            expect(Dir.children(directory)).to eq([])
          end
          expect(File.exist?("/tmp/memprofiler-#{program.pid}.sock")).to be(false)
        end
      end
    end

    it "says at once that the process has become another program, and removes the socket that this has left" do
      with_program("gets; exec('sleep', '1000')", answers: false) do |program|
        Dir.mktmpdir do |directory|
          printed = printed_by_record("--seconds", 1000, "-o", "#{directory}/a.pprof", program.pid) { program.puts }
          expect(printed).to eq("memprofiler: process #{program.pid} has become another program before the time was " \
                                "up: no profile\n")
          expect(Dir.children(directory)).to eq([])
        end
        expect(File.exist?("/tmp/memprofiler-#{program.pid}.sock")).to be(false)
      end
    end

    it "counts only what is allocated meanwhile in a process that has the profiler already" do
      with_program("sleep") do |program|
        memprofiler!("attach", "--rate", 1, program.pid)
        program.ask("$kept = Array.new(1000) { Random.new(1) }; 1")
        profile = Pprof.decode(memprofiler!("record", "--seconds", 1, "-o", "-", program.pid).b)
        kept = profile.samples.select { |sample| sample.labels["class"] == "Random" }
        expect(%w[allocations retained_objects].map { |type| kept.sum { |sample| sample[type] } }).to eq([0, 1000])
        expect(program.ask("MemprofilerPprof.running?")).to be(true)
        expect(memprofiler("record", "--seconds", 61, program.pid).stderr)
          .to include("--seconds must be in 1..60 for a process that has the profiler already, got 61")
      end
    end

    %w[INT TERM HUP].each do |signal|
      it "writes the profile if #{signal} ends it early" do
        with_program("sleep") do |program|
          Dir.mktmpdir do |directory|
            printed = printed_by_record("--seconds", 1000, "-o", "#{directory}/a.pprof", program.pid) do |pid|
              Process.kill(signal, pid)
            end
            expect(printed).to end_with("#{directory}/a.pprof\n")
            expect(memprofiler!("report", "#{directory}/a.pprof")).to include("Attached at")
          end
          expect(program.ask("MemprofilerPprof.running?")).to be(false)
        end
      end
    end

    it "refuses, before it attaches, a directory in which no new file can be made" do
      with_program("sleep") do |program|
        Dir.mktmpdir do |directory|
          File.write("#{directory}/tmp", "in the way")
          expect(memprofiler("record", program.pid, chdir: directory).stderr)
            .to end_with("#{directory}/tmp/profiles: Not a directory; --output names another file\n")
        end
        expect(program.ask("defined?(MemprofilerPprof)")).to be_nil
      end
    end

    it "writes the profile even if it cannot detach" do
      with_program("sleep") do |program|
        Dir.mktmpdir do |directory|
          other = nil
          printed = printed_by_record("--seconds", 1, "-o", "#{directory}/a.pprof", program.pid) do
            # As another tool that attaches to this process meanwhile.
            other = File.open("/proc/#{program.pid}/mem").tap { |memory| memory.flock(File::LOCK_EX) }
          end
          expect(printed).to include("record: could not detach: somebody else attaches to process #{program.pid}",
                                     "; then: memprofiler detach #{program.pid}\n#{directory}/a.pprof\n")
          expect(Process.last_status.exitstatus).to eq(2)
          expect(memprofiler!("report", "#{directory}/a.pprof")).to include("Attached at")
        ensure
          other&.close
        end
      end
    end

    it "writes the profile even if Ctrl-C ends the detaching" do
      with_program("sleep") do |program|
        Dir.mktmpdir do |directory|
          printed = printed_by_record("--seconds", 1, "-o", "#{directory}/a.pprof", program.pid) do |pid|
            program.ask("MemprofilerPprof::Attached.define_singleton_method(:stop) { sleep }; 1")
            wait_until { program.ask(threads).include?("ruby_memprofiler_pprof attach") }
            Process.kill(:INT, pid)
          end
          expect(printed).to include("could not detach: interrupted; then: memprofiler detach #{program.pid}")
          expect(memprofiler!("report", "#{directory}/a.pprof")).to include("Attached at")
        end
      end
    end

    # @yieldparam pid [Integer] once it has attached
    # @return [String] what it has printed since, up to its end, which takes minutes only if it hangs
    def printed_by_record(*arguments)
      # In the foreground timeout passes signals on once, rather than to the command and then to all of its group.
      timeout = %w[timeout --foreground 300]
      IO.popen([own_environment, *timeout, *command("record", *arguments)], err: %i[child out]) do |output|
        expect(output.gets).to include("attached in")
        yield output.pid
        output.read
      end
    end

    it "writes a profile of CPU time" do
      with_program("loop { 1000.times { |i| i.to_s } }") do |program|
        Dir.mktmpdir do |directory|
          # Beside other busy processes there may be no tick in a second.
          memprofiler!("record", "--cpu", "--seconds", 5, "-o", "#{directory}/a.pprof", program.pid)
          expect(memprofiler!("report", "#{directory}/a.pprof")).to match(/^cpu: .*s/).and include("-e:")
        end
        expect(program.ask("MemprofilerPprof::CPU.running?")).to be(false)
      end
    end

    it "says what to do if the process samples CPU time already" do
      with_program("sleep") do |program|
        memprofiler!("attach", program.pid)
        program.ask("MemprofilerPprof::CPU.start; 1")
        expect(memprofiler("record", "--cpu", "--seconds", 1, program.pid).stderr)
          .to eq("memprofiler: process #{program.pid} takes a CPU profile already: read the files that it writes, " \
                 "or stop that\n")
      end
    end

    it "writes a profile of CPU time apart from those of the heap if no file is named" do
      with_program("sleep") do |program|
        Dir.mktmpdir do |directory|
          memprofiler!("record", "--cpu", "--seconds", 1, program.pid, chdir: directory)
          expect(Dir.glob("**/*.pprof", base: directory))
            .to match([%r{\Atmp/profiles/cpu/record-#{program.pid}-[^/]*\z}])
        end
      end
    end
  end

  describe "with a server" do
    it "fails no request", :slow do
      code = <<~'RUBY'
        require "socket"
        server = TCPServer.new("127.0.0.1", 0)
        puts server.addr[1]
        workers = Array.new(4) do
          Thread.new do
            loop do
              client = server.accept
              client.gets
              client.write(Array.new(200) { |i| "line #{i}" }.join("\n") + "\n")
              client.close
            end
          end
        end
        sleep
      RUBY
      with_program(code) do |program|
        port = Integer(program.gets)
        done = false
        bodies = Thread.new do
          sizes = []
          sizes << answer(port).lines.size until done
          sizes
        end
        10.times { %w[attach detach].each { |command| memprofiler!(command, program.pid) } }
        done = true
        expect(bodies.value.uniq).to eq([200])
        expect(program).to be_alive
      end
    end
  end

  it "can be killed at any moment", :slow do
    with_program("loop { +'x'; Thread.pass }") do |program|
      random = Random.new(1)
      20.times do
        tool = spawn(*command("attach", program.pid), %i[out err] => IO::NULL, pgroup: true)
        sleep(random.rand(0.6))
        Process.kill(:KILL, -tool)
        Process.wait(tool)
      end
      expect(program).to be_alive
      expect(program.ask("1 + 1")).to eq(2)
      # One of them may have come through, or may still do.
      wait_until { memprofiler("attach", program.pid).then { |outcome| outcome.stderr.include?("already") } }
      memprofiler!("detach", program.pid)
      expect(program.ask("MemprofilerPprof.running?")).to be(false)
    ensure
      Dir.glob("/tmp/memprofiler-attach-#{program.pid}-*").each { |directory| FileUtils.rm_r(directory) }
    end
  end
end
