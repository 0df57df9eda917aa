# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"
require "tmpdir"
require_relative "../../script/torture_oom.d/cgroup"
require_relative "../../script/torture_oom.d/trial"

RSpec.describe MemprofilerPprof::MemoryWatch do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # Any process has more than this, so the watcher fires at once.
  settings = 'files: true, pattern: "mem-%{pid}.pprof", interval: 3600, sample_rate: 1, dump_above: 1 << 20'
  # Waits until there is a file.
  found = <<~RUBY
    def found(pattern)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      sleep(0.01) until Dir.glob(pattern).any? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      Dir.glob(pattern)
    end
  RUBY

  define_method(:run_program) do |code, **options|
    run_ruby("#{found}\nMemprofilerPprof.start(#{settings})\n#{code}", **options)
  end

  def dumps
    Dir.glob("*-oom*.pprof").map { |file| MemprofilerPprof::Profile.load(file) }
  end

  before { skip "only Linux says how much memory is in use" unless File.exist?("/proc/self/status") }

  it "writes a complete profile that says why, with labels" do
    outcome = run_ruby(<<~RUBY)
      #{found}
      MemprofilerPprof.start(#{settings.sub("1 << 20", "1 << 50")})
      kept = MemprofilerPprof.with_labels(endpoint: "users#show") { Array.new(1000) { Object.new } }
      MemprofilerPprof.start(dump_above: 1 << 20)
      found("*-oom.pprof")
      # Its thread may still have to say so.
      MemprofilerPprof.stop
    RUBY
    expect(outcome).to be_success, outcome.to_s
    expect(outcome.stderr).to match(/memory runs short \(level; \d+ MiB used, .*: wrote .*-oom\.pprof/)
    dump = dumps.last
    expect(dump.comments).to include(/\Adump_above=level: \d+ bytes resident, growing/)
    expect(dump.tag(endpoint: "users#show").total(:retained_objects).value).to be >= 1000
  end

  it "takes it while other threads keep Ruby busy" do
    outcome = run_program(<<~RUBY)
      Array.new(4) { Thread.new { loop { [] } } }
      found("*-oom.pprof")
      Process.exit!(true)
    RUBY
    expect([outcome, dumps.size]).to match([be_success, 1]), outcome.to_s
  end

  it "writes one profile of an episode, whatever the interval of the others" do
    outcome = run_program('found("*-oom.pprof"); MemprofilerPprof.flusher.flush_soon; found("mem-?*[0-9].pprof")')
    expect(outcome).to be_success, outcome.to_s
    expect(Dir.glob("*").map { |name| name.sub(/\d+/, "1") }).to include("mem-1-oom.pprof").and include("mem-1.pprof")
    expect(dumps.size).to eq(1)
  end

  it "takes no allocations away from other profiles" do
    run_program(<<~RUBY)
      Array.new(1000) { Object.new }
      found("*-oom.pprof")
    RUBY
    last = MemprofilerPprof::Profile.load(Dir.glob("mem-*[0-9].pprof").first)
    expect(last.top(by: :class, type: :allocations).find { |site| site.name == "Object" }.flat.value).to be >= 1000
  end

  it "watches forked children" do
    outcome = run_program(<<~RUBY)
      found("*-oom.pprof")
      child = fork { found("mem-\#{Process.pid}-oom.pprof") && Process.exit!(true) }
      Process.wait(child)
      Process.exit!($?.success?)
    RUBY
    expect([outcome, dumps.size]).to match([be_success, 2]), outcome.to_s
  end

  it "keeps no files of its parent open in a forked child" do
    outcome = run_program(<<~'RUBY')
      watched = lambda do
        links = Dir.children("/proc/self/fd").map { |number| File.readlink("/proc/self/fd/#{number}") rescue "" }
        links.grep(%r{\A/proc/\d+/statm\z}).map { |link| link[/\d+/].to_i }
      end
      found("*-oom.pprof")
      p watched.call == [Process.pid]
      $stdout.flush
      Process.wait(fork { p watched.call == [Process.pid] })
    RUBY
    expect(outcome.stdout.split).to eq(%w[true true]), outcome.to_s
  end

  # As those do that become daemons: what they open gets the numbers of what was open.
  it "leaves the files of a program alone that has closed all it found open" do
    outcome = run_ruby(<<~'RUBY')
      MemprofilerPprof.start(files: true, pattern: "mem-%{pid}.pprof", dump_above: 1 << 40)
      pid = fork do
        Dir.children("/proc/self/fd").map(&:to_i).select { |number| number > 2 }.each do |number|
          IO.for_fd(number).close
        rescue ArgumentError, SystemCallError
          # One of the VM's own, and that of the directory.
        end
        files = Array.new(12) { |number| File.open("log#{number}", "w") }
        written = -> { files.all? { |file| file.syswrite("x") == 1 } }
        watched = -> { Dir.glob("/proc/self/fd/*").count { |link| File.readlink(link).end_with?("/statm") rescue false } }
        sleep 0.01 until watched.call == 1
        Process.wait(fork { p written.call; $stdout.flush; exit!(true) })
        MemprofilerPprof.stop
        p written.call
        $stdout.flush
        exit!(true)
      end
      Process.wait(pid)
    RUBY
    expect(outcome.stdout.split).to eq(%w[true true]), outcome.to_s
  end

  it "has ended when the profiler stops" do
    outcome = run_program(<<~RUBY)
      found("*-oom.pprof")
      MemprofilerPprof.stop
      names = -> { Thread.list.map(&:name).grep(/memory watch/) }
      print names.call
    RUBY
    expect(outcome.stdout).to eq("[]")
  end

  it "does not end what watches since" do
    allow(described_class).to receive_messages(begin: 1, wait: nil)
    allow(described_class).to receive(:end)
    pattern = MemprofilerPprof::FilePattern.new("mem.pprof")
    first, second = Array.new(2) { described_class.new(new_collector, 1, pattern: pattern).start }
    first.stop
    expect(described_class).not_to have_received(:end)
    second.stop
    expect(described_class).to have_received(:end)
  end

  it "ends without what has ended its thread" do
    allow(described_class).to receive(:begin).and_return(1)
    allow(described_class).to receive(:wait) do
      Thread.current.report_on_exception = false
      raise NoMemoryError
    end
    pattern = MemprofilerPprof::FilePattern.new("mem.pprof")
    expect { described_class.new(new_collector, 1, pattern: pattern).start.stop }.not_to raise_error
  end

  it "says which one was the last of the process" do
    allow(described_class).to receive_messages(begin: 1, done: nil)
    alarms = [false, true].map { |last| ["level", 90, 100, 0.0, true, last] }
    allow(described_class).to receive(:wait) { alarms.shift }
    logger = FakeLogger.new
    pattern = MemprofilerPprof::FilePattern.new("mem.pprof")
    watch = described_class.new(new_collector.start, 1, pattern: pattern, logger: logger).start
    wait_until { logger[:warn].size == 3 }
    watch.stop
    expect(logger[:warn]).to match([/wrote/, /wrote/, /that was the last profile/])
  end

  it "does not go on watching if there is no thread for its profiles" do
    allow(described_class).to receive(:begin).and_return(1)
    allow(described_class).to receive(:end)
    allow(MemprofilerPprof::BackgroundThread).to receive(:start).and_raise(ThreadError, "no threads")
    logger = FakeLogger.new
    described_class.new(new_collector, 1, pattern: MemprofilerPprof::FilePattern.new("mem.pprof"), logger: logger).start
    expect(described_class).to have_received(:end)
    expect(logger[:error]).to match([/memory is not watched: no threads/])
  end

  it "says so where it cannot tell what the process has in memory" do
    skip "only root hides /proc" unless Process.uid.zero? && system("unshare", "-m", "true", err: File::NULL)
    code = "MemprofilerPprof.start(dump_above: 1 << 50, files: true)"
    ruby = [*SubprocessHelpers::RUBY, "-I#{SubprocessHelpers::LIB}", "-rruby_memprofiler_pprof", "-e", code]
    outcome = run_command("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *ruby)
    expect(outcome.stderr).to include("memory is not watched: /proc/self/statm cannot be read")
  end

  it "ends with the process, whatever it is doing" do
    20.times { expect(run_program("")).to be_success }
  end

  it "writes a profile when a NoMemoryError ends the process" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof.start(#{settings.sub("1 << 20", "1 << 50")})
      kept = Array.new(1000) { Object.new }
      raise NoMemoryError, "failed to allocate memory"
    RUBY
    expect(outcome.stderr).to match(/NoMemoryError: wrote .*-oom\.pprof/)
  end

  it "writes a profile when there is no more address space" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof.start(#{settings.sub("1 << 20", "1 << 50")})
      used = File.read("/proc/self/status")[/VmSize:\\s*(\\d+)/, 1].to_i << 10
      Process.setrlimit(:AS, used + (100 << 20))
      kept = []
      loop { kept << "x" * 1_000_000 }
    RUBY
    expect([outcome.stderr, outcome.status.exitstatus]).to match([/NoMemoryError: wrote .*-oom\.pprof/, 1])
  end

  it "removes those of ended processes after some days" do
    profile = Pprof::Maker.lines({ "/a.rb:1" => [0, 1] }, comments: { greatest_weight: 1 }).to_s
    %w[mem-1-oom.pprof mem-2.pprof].each { |name| File.binwrite(name, profile) && File.utime(0, 0, name) }
    allow(described_class).to receive_messages(begin: 1, wait: nil)
    pattern = MemprofilerPprof::FilePattern.new("mem-%{pid}.pprof")
    described_class.new(new_collector.start, 1, pattern: pattern, keep_days: 7, logger: FakeLogger.new).start.stop
    expect(Dir.children(".")).to eq(["mem-2.pprof"])
  end

  describe "in place of another" do
    define_method(:run_program) do |changes, code|
      outcome = run_ruby(<<~RUBY)
        #{found}
        MemprofilerPprof::MemoryWatch.prepend(Module.new { #{changes} })
        MemprofilerPprof.start(#{settings.sub("1 << 20", "1 << 50")})
        #{code}
        found("*-oom.pprof")
        MemprofilerPprof.stop
      RUBY
      expect(outcome).to be_success, outcome.to_s
    end

    it "says why if the former's thread goes on only then" do
      run_program(<<~RUBY, <<~RUBY)
        late, former = Queue.new, nil
        define_method(:path) do |*time|
          former ||= Thread.current unless Thread.current == Thread.main
          late.pop if Thread.current == former
          super(*time)
        end
        define_method(:write) do |reason|
          late.close
          Thread.pass until late.num_waiting.zero? && former.stop?
          super(reason)
        end
        define_singleton_method(:wait_for_former) { Thread.pass until late.num_waiting == 1 }
        HELD = self
      RUBY
        HELD.wait_for_former
        MemprofilerPprof.start(dump_above: 1 << 20)
      RUBY
      expect(dumps.map(&:comments)).to all(include(/\Adump_above=level/)).and have_attributes(size: be_positive)
    end

    it "lets the former's thread say why it takes a profile" do
      run_program(<<~RUBY, <<~RUBY)
        HELD = Array.new(2) { Queue.new }
        define_method(:write) do |reason|
          HELD[0] << reason
          HELD[1].pop
          super(reason)
        end
      RUBY
        MemprofilerPprof.start(dump_above: 1 << 20)
        HELD[0].pop
        MemprofilerPprof.start(dump_above: 1 << 50)
        HELD[1].close
      RUBY
      expect(dumps.map(&:comments)).to all(include(/\Adump_above=level/)).and have_attributes(size: be_positive)
    end
  end

  describe "beside other processes that run out of the same memory" do
    # Returns once there was an alarm.
    def alarm(at_fault)
      alarms = [["level", 90, 100, 0.0, at_fault, false]]
      allow(described_class).to receive(:begin).and_return(1)
      allow(described_class).to receive(:wait) { alarms.shift }
      pattern = MemprofilerPprof::FilePattern.new("mem.pprof")
      watch = described_class.new(new_collector.start, "90%", pattern: pattern, logger: FakeLogger.new).start
      wait_until { alarms.empty? }
      watch
    end

    # Another process writes its profile.
    def while_another_writes
      File.open(".") do |directory|
        directory.flock(File::LOCK_EX)
        yield
      end
    end

    it "writes at once if it is what fills the memory" do
      while_another_writes { alarm(true).stop }
      expect(Dir.children(".")).to eq(["mem-oom.pprof"])
    end

    it "waits its turn otherwise" do
      turns = []
      allow(described_class).to receive(:queue) { |waits| turns << waits }
      while_another_writes do
        alarm(false)
        wait_until { turns == [true] }
        expect(Dir.children(".")).to be_empty
      end
      wait_until { File.exist?("mem-oom.pprof") }
      expect(turns).to eq([true, false])
    end

    it "no longer waits when watching ends" do
      turns = []
      allow(described_class).to receive(:queue) { |waits| turns << waits }
      while_another_writes do
        watch = alarm(false)
        wait_until { turns == [true] }
        watch.stop
        expect(Thread.list.map(&:name)).not_to include(/memory watch/)
      end
      expect(Dir.children(".")).to be_empty
    end

    it "does not leave its turn to children that are forked meanwhile" do
      child = nil
      allow(MemprofilerPprof::AtomicFile).to receive(:create).and_wrap_original do |create, *arguments|
        child = fork { sleep }
        create.call(*arguments)
      end
      alarm(false).stop
      File.open(".") { |directory| expect(directory.flock(File::LOCK_EX | File::LOCK_NB)).to eq(0) }
    ensure
      Process.kill(:KILL, child)
      Process.wait(child)
    end

    it "does not take its wait for a want of Ruby" do
      outcome = run_ruby(<<~RUBY)
        #{found}
        queued = Queue.new
        MemprofilerPprof::MemoryWatch.singleton_class.prepend(Module.new do
          define_method(:wait) { |*arguments| super(*arguments)&.then { |*figures, _, last| [*figures, false, last] } }
          define_method(:queue) { |waits| super(waits).tap { queued << waits } }
        end)
        File.open(".") do |directory|
          directory.flock(File::LOCK_EX)
          MemprofilerPprof.start(#{settings})
          queued.pop
          # For longer than it has patience with a thread that takes a profile.
          sleep 2.5
          p Dir.glob("*-oom*.pprof")
        end
        found("*-oom.pprof")
        MemprofilerPprof.stop
      RUBY
      expect([outcome.stdout, dumps.size]).to eq(["[]\n", 1]), outcome.to_s
      expect(dumps.first.comments).not_to include(/\Aemergency=/)
    end
  end

  describe "without a safe point" do
    before { skip CompiledExtension.missing if CompiledExtension.missing }

    let(:dump) { dumps.find { |profile| profile.comments.any?(/\Aemergency=/) } }

    # The call is on line 10 of the program. It takes 100 MB, with which the level is reached.
    define_method(:run_call) do |before = "", dumps: "mem-*-oom*.pprof"|
      library = CompiledExtension.new("holds_gvl").library.delete_suffix(".so")
      File.write("program.rb", <<~RUBY)
        require #{library.inspect}
        def kept_by_ruby
          Array.new(1000) { Object.new }
        end
        module Caller
          def self.call(kept)
            MemprofilerPprof.with_labels(job: "long") do
              # Nothing here has been in a profile yet.
              1.times do
                HoldsGvl.until_there_is(#{dumps.inspect}, kept, 60, 100 << 20)
              end
            end
          end
        end
        MemprofilerPprof.start(#{settings.sub("1 << 20", "1 << 50")})
        kept = kept_by_ruby
        resident = File.read("/proc/self/status")[/VmRSS:\\s+(\\d+)/, 1].to_i << 10
        MemprofilerPprof.start(dump_above: resident + (50 << 20))
        #{before}
        Process.exit!(Caller.call([]) && kept.size == 1000)
      RUBY
      run_ruby("load 'program.rb'")
    end

    it "writes what can be read without the GVL" do
      outcome = run_call
      expect(outcome).to be_success, outcome.to_s
      lines = dump.top(by: :line, type: :retained_objects).map { |site| site.name[/program.rb:\d+/] }
      expect(lines).to include("program.rb:3", "program.rb:10")
      expect(dump.tag(job: "long").total(:retained_objects).value).to be_positive
    end

    it "writes it also if its thread has been waiting" do
      outcome = run_call(<<~RUBY)
        waits = ->(thread) { thread.name&.end_with?("memory watch") && thread.stop? }
        Thread.pass until Thread.list.any?(&waits)
      RUBY
      expect(outcome).to be_success, outcome.to_s
      expect(dump).not_to be_nil
    end

    it "says of which process it is, like any other" do
      before = Time.now.to_f.round(3)
      run_call
      totals = MemprofilerPprof::Report::Totals.new(dump)
      expect(totals["pid"].to_s).to eq(Dir.glob("mem-*-oom.pprof").first[/\d+/])
      expect(totals.started_at).to be_between(before, Time.now.to_f)
    end

    it "has the time of writing in its name" do
      outcome = run_call(<<~RUBY)
        MemprofilerPprof.start(pattern: "mem-%{pid}-%{isotime}-%{unixtime}.pprof")
        sleep 1.1
        $stdout.write(Time.now.to_i)
        $stdout.flush
      RUBY
      expect(outcome).to be_success, outcome.to_s
      name = Dir.glob("*-oom*.pprof").find { |file| MemprofilerPprof::Profile.load(file).comments.any?(/\Aemergency=/) }
      isotime, unixtime = name[/-(\w+Z-\d+)-oom/, 1].split("-")
      expect(Integer(unixtime)).to be_between(Integer(outcome.stdout), Time.now.to_i)
      expect(isotime).to eq(Time.at(Integer(unixtime)).utc.strftime("%Y%m%dT%H%M%SZ"))
    end

    it "has the process's tags" do
      run_call('MemprofilerPprof.start(tags: { release: "1.2" })')
      expect(MemprofilerPprof::Tags.of(dump.comments)).to eq("release" => "1.2")
    end

    it "says of which process it is in a forked child" do
      outcome = run_call(<<~RUBY)
        if (child = fork)
          Process.wait(child)
          $stdout.write(child)
          $stdout.flush
          Process.exit!($?.success?)
        end
      RUBY
      expect(outcome).to be_success, outcome.to_s
      expect(dump.comments).to include("pid=#{outcome.stdout}")
    end

    it "has the groups of what was sampled in windows", skip: ("windows need Ruby 3.3" if RUBY_VERSION < "3.3") do
      outcome = run_call(<<~RUBY)
        MemprofilerPprof.start(sampling: :windows, sample_rate: 0.5, window_duty: 0.5, window_frame: 0.002)
        more = []
        100.times { more << Object.new } until MemprofilerPprof.collector.stats[:windows] >= 50
      RUBY
      expect(outcome).to be_success, outcome.to_s
      windows = dump.total(:retained_objects).windows
      expect(windows&.count(&:positive?)).to be > 8
    end

    it "makes the directory, which only its owner can enter, with parents that others can" do
      umask = File.umask(0o022)
      outcome = run_call('MemprofilerPprof.start(pattern: "a/b/%{pid}.pprof")', dumps: "a/b/*-oom.pprof")
      expect(outcome).to be_success, outcome.to_s
      expect(%w[a a/b].map { |directory| File.stat(directory).mode & 0o777 }).to eq([0o755, 0o700])
    ensure
      File.umask(umask)
    end

    it "gives the file a number before the extension if its name is taken" do
      outcome = run_call(<<~'RUBY', dumps: "*-oom_*")
        MemprofilerPprof.start(pattern: "%{pid}.pb.gz")
        File.write("#{Process.pid}-oom.pb.gz", "")
      RUBY
      expect(outcome).to be_success, outcome.to_s
      # What was written without the GVL comes first.
      expect(Dir.glob("*-oom_*").min).to match(/\A\d+-oom_x1\.pb\.gz\z/)
    end

    it "has the time of writing in its name in any directory" do
      Dir.mkdir("caf\xE9")
      outcome = Dir.chdir("caf\xE9") do
        run_call('MemprofilerPprof.start(pattern: "%{isotime}.pprof")', dumps: "*-oom*.pprof")
      end
      expect(outcome).to be_success, outcome.to_s
      expect(Dir.children("caf\xE9".b).grep(/-oom/)).to include(/\A2\d{7}T\d{6}Z-oom/).and all(match(/\A2/))
    end

    it "says so in the profile" do
      run_call
      expect(dump.comments)
        .to include(/\Aemergency=written without the GVL/, /\Adump_above=level/, /\Agreatest_weight=1/)
    end
  end

  describe ".pattern" do
    it "puts the suffix before the extension" do
      patterns = ["a/mem-%{pid}.pprof", "mem.pb.gz", "mem", "/tmp/a.b/mem"].map do |text|
        described_class.pattern(MemprofilerPprof::FilePattern.new(text)).to_s
      end
      expect(patterns).to eq(["a/mem-%{pid}-oom.pprof", "mem-oom.pb.gz", "mem-oom", "/tmp/a.b/mem-oom"])
    end
  end

  describe "the setting dump_above" do
    def level(value)
      MemprofilerPprof::Configuration.from_env("RUBY_MEMPROFILER_PPROF_DUMP_ABOVE" => value).dump_above
    end

    it "is a part of the limit, bytes, or false" do
      values = ["90%", "85.5 %", "2000000", "1.5GiB", "300MB", "300M", "2000k", "1EiB", "false", "off", ""]
      expect(values.map { |value| level(value) })
        .to eq(["90%", "85.5%", 2_000_000, 1_610_612_736, 300_000_000, 300_000_000, 2_000_000, 1 << 60, false, false,
                "90%"])
    end

    def profiler(**settings)
      MemprofilerPprof::DefaultProfiler.new({}).tap { |profiler| profiler.start(**settings) }
    end

    def begun(**settings)
      allow(described_class).to receive(:begin).and_return(nil)
      profiler(**settings).stop
      described_class
    end

    it "applies by default where files are written" do
      expect(begun(files: true)).to have_received(:begin).with(anything, 0.9, nil, /-oom/)
    end

    it "applies elsewhere only if it is set" do
      expect(begun).not_to have_received(:begin)
      expect(begun(dump_above: 1 << 30)).to have_received(:begin).with(anything, nil, 1 << 30, /-oom/)
    end

    it "comes with keep_days, also where no other files are written" do
      allow(described_class).to receive(:new).and_return(instance_double(described_class, start: nil, stop: nil))
      profiler(dump_above: 1 << 30, keep_days: 3).stop
      expect(described_class).to have_received(:new).with(anything, 1 << 30, hash_including(keep_days: 3))
    end

    it "can be switched off" do
      expect(begun(files: true, dump_above: false)).not_to have_received(:begin)
    end
  end

  describe "in a cgroup", :slow do
    before { skip "no cgroup with a memory limit can be made here" unless TortureOom::Cgroup.available? }

    TortureOom::Trial::PROGRAMS.each do |program|
      it "leaves a profile of what the kernel kills: #{program}" do
        skip CompiledExtension.missing if program == "c_call" && CompiledExtension.missing
        trial = TortureOom::Trial.new(program, 50, 300).run
        expect(trial.outcome).to eq(program == "c_call" ? :emergency : :complete), trial.to_s
      end
    end
  end
end
