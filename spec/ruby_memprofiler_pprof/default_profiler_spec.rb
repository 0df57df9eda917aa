# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe MemprofilerPprof::DefaultProfiler, :threads do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  after { profilers.each(&:stop) }

  let(:profilers) { [] }

  # A profiler with settings from an environment, named without their prefix.
  def profiler(**variables)
    env = variables.transform_keys { |name| "RUBY_MEMPROFILER_PPROF_#{name}" }
    described_class.new(env).tap { |made| profilers << made }
  end

  def files
    Dir.glob("**/*").select { |name| File.file?(name) }.sort
  end

  # What the block returns in a forked child, as JSON can say it.
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      writer << JSON.generate(yield)
      writer.close
      exit!
    end
    writer.close
    JSON.parse(reader.read)
  ensure
    Process.wait(pid)
  end

  describe "#configure" do
    it "sets what the environment does not" do
      one = profiler(MAX_FRAMES: "2")
      one.configure { |config| config.max_frames = config.seed = 3 }
      expect(one.config).to have_attributes(max_frames: 2, seed: 3)
    end

    it "takes precedence over a framework" do
      one = profiler
      one.configure { |config| config.max_frames = 3 }
      one.configure(:framework) { |config| config.max_frames = config.seed = 4 }
      expect(one.config).to have_attributes(max_frames: 3, seed: 4)
    end

    it "changes nothing if one setting is wrong" do
      one = profiler
      expect { one.configure { |config| config.max_frames = (config.seed = 3) - 3 } }.to raise_error(ArgumentError)
      expect(one.config).to have_attributes(seed: nil, max_frames: 1000)
    end

    it "fails if the environment is wrong" do
      expect { profiler(SEED: "x").configure { nil } }.to raise_error(ArgumentError, /RUBY_MEMPROFILER_PPROF_SEED must/)
    end

    it "warns of variables that are no settings" do
      expect { profiler(SED: "x").config }.to output(/PPROF_SED is not a setting \(did you mean SEED\?\)/).to_stderr
    end

    it "suggests the present name of a variable of the C gem" do
      expect { profiler(FILE_PATTERN: "x").config }.to output(/is not a setting \(did you mean PATTERN\?\)/).to_stderr
    end

    it "keeps what other threads set meanwhile" do
      one = profiler
      one.configure do |config|
        Thread.new { one.configure { |other| other.seed = 3 } }.join
        config.max_frames = 3
      end
      expect(one.config).to have_attributes(seed: 3, max_frames: 3)
    end

    it "changes the collector, running or not, and back again" do
      one = profiler
      rates = [one.collector.sample_rate]
      one.configure { |config| config.sample_rate = 0.5 }
      rates << one.collector.sample_rate
      one.start
      one.configure { |config| config.sample_rate = 0.25 }
      rates << one.collector.sample_rate
      one.configure { |config| config.sample_rate = nil }
      expect(rates << one.collector.sample_rate).to eq([0.01, 0.5, 0.25, 0.01])
    end

    it "changes where files go" do
      one = profiler
      one.start(files: true, sample_rate: 1)
      one.configure { |config| config.pattern = "b" }
      one.stop
      expect(files).to eq(["b"])
    end

    it "has a flusher adopt its settings at once" do
      one = profiler(INTERVAL: "1000", FILES: "1", SAMPLE_RATE: "1")
      one.start
      first = one.flusher
      expect { one.configure { |config| config.priority = 1 } }.not_to output.to_stderr
      expect([first, one.flusher].map(&:running?)).to eq([false, true])
      expect(files).to eq([])
    end

    it "has a flusher adopt what a framework configures after the start" do
      one = profiler(SAMPLE_RATE: "1")
      one.boot
      one.configure(:framework) { |config| config.interval = 0.01 }
      wait_until { files.any? }
    end

    it "begins to deliver profiles when that is configured" do
      one = profiler(SAMPLE_RATE: "1")
      one.start
      one.configure { |config| config.pattern = "b" }
      one.stop
      expect(files).to eq(["b"])
    end

    it "warns about changes of CPU time, which have to wait" do
      one = profiler(CPU: "1", CPU_PATTERN: "c")
      one.start
      expect { one.configure { |config| config.cpu_frequency = 9 } }
        .to output(/ cpu_frequency: takes .* after a stop/).to_stderr
      expect { one.configure { |config| config.interval = 9 } }.not_to output(/takes effect/).to_stderr
    end

    it "leaves the files of CPU time as they were if there can be no thread for other ones" do
      one = profiler(CPU: "1", CPU_PATTERN: "%{index}")
      one.start
      allow(MemprofilerPprof::BackgroundThread).to receive(:start).and_raise(ThreadError, "can't create Thread")
      allow(MemprofilerPprof::StderrLogger).to receive(:error)
      expect { one.configure { |config| config.interval = 9 } }.to raise_error(ThreadError)
      expect(Thread.list.map(&:name).grep(/flusher/).size).to eq(1)
      one.stop
      expect([files, Thread.list.map(&:name).grep(/flusher/)]).to eq([["0"], []])
    end

    it "warns that a running profiler is not switched off" do
      one = profiler
      one.start
      expect { one.configure { |config| config.enabled = false } }.to output(/enabled: takes effect at/).to_stderr
    end

    it "warns that a running collector keeps its way of noticing deaths" do
      one = profiler
      one.start
      expect { one.configure { |config| config.liveness = :freeobj } }.to output(/liveness takes effect when/).to_stderr
    end
  end

  describe "#start" do
    it "starts the one collector" do
      one = profiler(SAMPLE_RATE: "0.5")
      expect(one.start).to be(one.start).and be(one.collector).and have_attributes(running?: true, sample_rate: 0.5)
    end

    it "writes no files by default" do
      one = profiler
      one.start
      expect([one.flusher, Dir.children(".")]).to eq([nil, []])
    end

    { pattern: "a", files: true }.each do |keyword, value|
      it "writes files if #{keyword} is set" do
        one = profiler
        one.start(keyword => value)
        expect(one.flusher).to be_running & be_a(MemprofilerPprof::FileFlusher)
      end
    end

    it "writes no files if that is set, whatever else is set" do
      one = profiler(PATTERN: "a")
      one.start(files: false)
      expect(one.flusher).to be_nil
    end

    it "warns about an interval without effect" do
      one = profiler(INTERVAL: "9")
      expect { one.start }.to output(/interval: no effect, as profiles go nowhere; set files/).to_stderr
      expect(one.flusher).to be_nil
    end

    it "warns about no interval at which files of CPU time are written" do
      one = profiler(INTERVAL: "9", DUMP_ON: "URG", CPU: "1")
      expect { one.start }.to output(/\] dump_on: no effect/).to_stderr
    end

    it "warns about a sample_rate of 0, unless CPU time is sampled" do
      expect { profiler(SAMPLE_RATE: "0").start }.to output(/\] sample_rate is 0: no allocation is/).to_stderr
      expect { profiler(SAMPLE_RATE: "0", CPU: "1").start }.not_to output.to_stderr
    end

    it "calls on_flush with each profile, even after it raised" do
      calls = Queue.new
      one = profiler(SAMPLE_RATE: "1", KEEP_DAYS: "1", KEEP_FILES: "1")
      one.integrate(flusher_class: MemprofilerPprof::FileFlusher, logger: FakeLogger.new)
      one.start(on_flush: ->(profile) { calls.push(profile) && raise(NotImplementedError, "broken") })
      one.flusher.flush_soon
      first = calls.pop
      Array.new(10) { Object.new }
      one.stop
      expect([first, calls.pop]).to all(be_a(MemprofilerPprof::ProfileData))
      expect(Dir.children(".")).to eq([])
    end

    it "needs no files for what only files have" do
      one = profiler(KEEP_FILES: "2", KEEP_DAYS: "3", RETAINERS_EVERY: "4")
      one.start(on_flush: ->(_) {})
      expect([one.flusher.class, files]).to eq([MemprofilerPprof::BlockFlusher, []])
    end

    it "sends to Pyroscope by the environment alone, and calls on_flush as well" do
      FakeHttpServer.run(200) do |server|
        calls = Queue.new
        one = profiler(PYROSCOPE_URL: server.url, PYROSCOPE_APP_NAME: "shop", PYROSCOPE_AUTH_TOKEN: "secret",
                       TAGS: "region=eu", SAMPLE_RATE: "1")
        [-> { one.boot }, -> { one.start(on_flush: calls.method(:push)) }].each do |start|
          start.call
          one.stop
        end
        wait_until { server.requests.size == 2 }
        request = server.requests.first
        expect([request.query["name"], request.headers["authorization"], calls.size, Dir.children(".")])
          .to eq(["shop{region=eu}", "Bearer secret", 1, []])
        expect(Pprof.decode(request.body).type_names).to include("alloc_objects", "inuse_space")
      end
    end

    it "has one thread for Pyroscope, however often it starts" do
      FakeHttpServer.run(200) do |server|
        others = Thread.list
        one = profiler(PYROSCOPE_URL: server.url, PYROSCOPE_APP_NAME: "shop", SAMPLE_RATE: "1")
        2.times { [one.boot, Array.new(10) { Object.new }, one.stop] }
        wait_until { server.requests.size == 2 }
        expect((Thread.list - others).map(&:name).grep(/uploader/).size).to eq(1)
      end
    end

    it "calls on_flush although Pyroscope cannot be set up" do
      calls = Queue.new
      one = profiler(PYROSCOPE_URL: "http://[", PYROSCOPE_APP_NAME: "shop", SAMPLE_RATE: "1")
      one.integrate(flusher_class: MemprofilerPprof::FileFlusher, logger: FakeLogger.new)
      one.start(on_flush: calls.method(:push))
      Array.new(10) { Object.new }
      one.stop
      expect(calls.size).to eq(1)
    end

    it "sends profiles to Pyroscope with the tags that are set while it runs" do
      FakeHttpServer.run(200) do |server|
        one = profiler(PYROSCOPE_URL: server.url, PYROSCOPE_APP_NAME: "shop")
        one.configure { |config| config.tags = { worker: "0" } }
        one.start
        one.flusher.flush_soon
        sleep 0.01 until server.requests.size == 1
        one.configure { |config| config.tags = { worker: "1" } }
        one.stop
        sleep 0.01 until server.requests.size == 2
        expect(server.requests.map { |request| request.query["name"] }).to eq(%w[shop{worker=0} shop{worker=1}])
      end
    end

    it "starts nothing if Pyroscope lacks a name" do
      one = profiler(PYROSCOPE_URL: "http://127.0.0.1:9")
      expect { one.start }.to raise_error(ArgumentError, "pyroscope_app_name must be set if pyroscope_url is")
      expect(one).not_to be_running
    end

    it "starts nothing if Pyroscope is given both a token and a password" do
      one = profiler(PYROSCOPE_URL: "http://127.0.0.1:9", PYROSCOPE_APP_NAME: "shop", PYROSCOPE_AUTH_TOKEN: "a",
                     PYROSCOPE_BASIC_AUTH: "b:c")
      expect { one.start }.to raise_error(ArgumentError, /exclude each other/)
    end

    it "takes settings that override all others until the stop" do
      one = profiler(MAX_FRAMES: "2")
      one.configure { |config| config.seed = 3 }
      one.start(max_frames: 4, seed: 4)
      during = one.collector.then { |collector| [collector.max_frames, collector.seed] }
      one.stop
      expect([during, one.collector.max_frames, one.collector.seed]).to eq([[4, 4], 2, 3])
    end

    it "keeps what other threads set meanwhile" do
      one = profiler
      # The last moment at which they can.
      one.define_singleton_method(:collector) { super().tap { configure { |config| config.seed = 3 } } }
      one.start(max_frames: 4)
      expect(one.config).to have_attributes(seed: 3, max_frames: 4)
    end

    it "starts nothing if a setting is wrong" do
      one = profiler
      expect { one.start(sample_rate: 2) }.to raise_error(ArgumentError, /sample_rate must be/)
      expect(one).not_to be_running
    end

    it "leaves nothing behind if it fails halfway" do
      one = profiler
      no_thread = Class.new(MemprofilerPprof::FileFlusher) { def start! = raise(ThreadError, "can't create Thread") }
      one.integrate(flusher_class: no_thread, logger: MemprofilerPprof::StderrLogger)
      expect { one.start(files: true, interval: 9, seed: 3, socket: "s") }.to raise_error(ThreadError)
      expect([one.running?, one.config.seed, one.collector.seed == 3, Dir.children(".")]).to eq([false, nil, false, []])
      expect(one.start).to be_running
    end
  end

  describe "#start that fails" do
    # In a directory that is gone, where no relative name can be made absolute.
    def nowhere
      gone = Dir.mktmpdir
      Dir.chdir(gone) { yield Dir.rmdir(gone) }
    end

    # What runs besides the collector.
    def running(one)
      names = Thread.list.map(&:name).grep(/flusher|memory watch/)
      [one.running?, one.flusher, MemprofilerPprof::CPU.running?, names]
    end

    it "names the setting that is wrong, and starts nothing" do
      one = profiler
      target = File.expand_path("a")
      nowhere do
        expect { one.start(pattern: target, cpu: true) }.to raise_error(ArgumentError, %r{pattern: "tmp/profiles/cpu/})
      end
      expect(running(one)).to eq([false, nil, false, []])
    end

    it "leaves nothing running if an exception comes from outside" do
      interrupted = Class.new(MemprofilerPprof::FileFlusher) { def start! = super.tap { raise Interrupt } }
      one = profiler
      one.integrate(flusher_class: interrupted, logger: FakeLogger.new)
      expect { one.start(files: true, sample_rate: 1, cpu: true) }.to raise_error(Interrupt)
      wait_until { running(one) == [false, nil, false, []] }
      expect(files).to eq([])
    end

    it "leaves what ran before as it was" do
      one = profiler(PATTERN: "a", SAMPLE_RATE: "1")
      one.start
      expect { one.start(pattern: "b", pyroscope_url: "http://127.0.0.1:9") }.to raise_error(ArgumentError)
      expect(one.flusher).to be_running
      one.stop
      expect(files).to eq(["a"])
    end
  end

  describe "#stop" do
    it "ends what an exception has left running" do
      one = profiler(CPU: "1", CPU_PATTERN: "c", FILES: "1")
      one.start
      one.on_demand.define_singleton_method(:close) { raise Interrupt }
      expect { one.stop }.to raise_error(Interrupt)
      one.on_demand.singleton_class.undef_method(:close)
      one.on_demand.define_singleton_method(:close) { nil }
      one.stop
      expect([MemprofilerPprof::CPU.running?, Thread.list.map(&:name).grep(/flusher/)]).to eq([false, []])
    end

    it "leaves nothing running in a child that is forked meanwhile" do
      one = profiler(CPU: "1", CPU_PATTERN: "c", FILES: "1")
      one.start
      entered = Queue.new
      one.on_demand.define_singleton_method(:close) { [entered << true, sleep] }
      stopping = Thread.new { one.stop }
      entered.pop
      outcome = in_child { [MemprofilerPprof::CPU.running?, Thread.list.map(&:name).grep(/flusher/), one.flusher] }
      stopping.kill.join
      one.on_demand.define_singleton_method(:close) { nil }
      expect(outcome).to eq([false, [], nil])
    end

    it "writes a last file, of what was alive then" do
      one = profiler(PATTERN: "a", SAMPLE_RATE: "1")
      one.start
      kept = Array.new(10) { Class.new }
      one.stop
      expect(Pprof.decode(File.binread("a")).by_class["Class"]).to be >= kept.size
      expect(one).to have_attributes(running?: false, flusher: nil)
    end

    # A profiler whose flusher's thread calls the block after writing a file.
    def flushing(&after)
      one = profiler(PATTERN: "%{index}", SAMPLE_RATE: "1")
      logger = Object.new
      logger.define_singleton_method(:info) { |_| after.call(one) }
      one.integrate(flusher_class: MemprofilerPprof::FileFlusher, logger: logger)
      one.start
      one.tap { one.flusher.flush_soon }
    end

    it "waits for a subscriber that calls the profiler" do
      writing = Queue.new
      one = flushing do |this|
        writing << true
        wait_until { !this.running? }
        this.configure { |config| config.seed = 3 }
      end
      writing.pop
      thread = Thread.new { one.stop }
      expect(thread.join(60)).to be(thread)
      expect(one.config.seed).to eq(3)
    ensure
      thread&.kill
    end

    it "can be called from the flusher's thread" do
      done = Queue.new
      one = flushing { |this| done << this.tap(&:stop) }
      done.pop
      expect(one).to have_attributes(running?: false, flusher: nil)
    end

    it "releases a signal that was an argument of start" do
      previous = Signal.trap("URG", "DEFAULT")
      one = profiler
      one.start(toggle_on: "URG")
      one.stop
      expect(Signal.trap("URG", "DEFAULT")).to be_a(String)
    ensure
      Signal.trap("URG", previous)
    end

    it "is harmless before any start" do
      expect { profiler.stop }.not_to raise_error
    end
  end

  describe "#toggle" do
    it "stops with a file, and starts again with the settings of the start" do
      one = profiler
      one.start(pattern: "%{index}", sample_rate: 1)
      one.toggle
      stopped = [one.running?, files]
      one.toggle
      expect([*stopped, one.running?, one.collector.sample_rate]).to eq([false, ["0"], true, 1.0])
    end

    it "keeps no more files of a process, however often it is called" do
      one = profiler(PATTERN: "%{index}", SAMPLE_RATE: "1", KEEP_FILES: "2")
      one.start
      9.times { [one.toggle, Object.new] }
      expect(files.size).to eq(2)
    end

    it "writes files to where the start did, although the current directory is another one" do
      one = profiler(PATTERN: "%{index}", SAMPLE_RATE: "1")
      one.start
      Dir.mktmpdir { |other| Dir.chdir(other) { 3.times { one.toggle } } }
      expect(files).to eq(%w[0 1])
    end

    it "writes no files if the start did not" do
      one = profiler
      one.start
      2.times { one.toggle }
      expect(one).to have_attributes(running?: true, flusher: nil)
    end
  end

  describe "#boot" do
    it "starts with files" do
      one = profiler(PATTERN: "a")
      one.boot
      expect([one.running?, one.flusher.pattern]).to eq([true, "a"])
    end

    it "starts nothing if it is configured to begin paused" do
      one = profiler(START_PAUSED: "1", TOGGLE_ON: "URG")
      one.boot
      expect([one.running?, one.flusher]).to eq([false, nil])
    end

    it "says so if nothing but the program can start it" do
      expect { profiler(START_PAUSED: "1").boot }.to output(/start_paused: only .* toggle_on is not set/).to_stderr
    end

    it "writes files from the first toggle on if it is configured to begin paused" do
      one = profiler(START_PAUSED: "1", TOGGLE_ON: "URG")
      one.boot
      one.toggle
      expect(one.flusher).to be_running
    end

    # What the program itself does afterwards.
    {
      "starts it while it runs, and a signal stops and starts it" => %i[boot start toggle toggle],
      "stops and starts it" => %i[boot stop start]
    }.each do |what, calls|
      it "has files written also if the program #{what}" do
        one = profiler
        calls.each { |call| one.public_send(call) }
        expect(one.flusher).to be_a(MemprofilerPprof::FileFlusher)
      end
    end

    it "has files written also if the program starts it, as it is configured to begin paused" do
      one = profiler(START_PAUSED: "1", TOGGLE_ON: "URG")
      %i[boot start].each { |call| one.public_send(call) }
      expect(one.flusher).to be_a(MemprofilerPprof::FileFlusher)
    end

    it "has no files written if profiles go elsewhere" do
      one = profiler(START_PAUSED: "1", TOGGLE_ON: "URG")
      one.boot
      one.start(on_flush: ->(_) {})
      expect(one.flusher).not_to be_a(MemprofilerPprof::FileFlusher)
    end
  end

  describe "that is switched off" do
    it "by the environment starts nothing" do
      one = profiler(SOCKET: "s", INTERVAL: "9", ENABLED: "0")
      expect(one.start).to be(one.collector)
      expect([one.running?, one.flusher, Dir.children(".")]).to eq([false, nil, []])
    end

    it "by an argument starts nothing" do
      one = profiler(SOCKET: "s", INTERVAL: "9")
      one.start(enabled: false)
      expect([one.running?, one.flusher, Dir.children(".")]).to eq([false, nil, []])
    end

    it "neither boots nor starts at a signal" do
      previous = Signal.trap("URG", "DEFAULT")
      one = profiler(ENABLED: "no", START_PAUSED: "1", TOGGLE_ON: "URG", SOCKET: "s")
      one.boot
      one.toggle
      expect([one.running?, one.flusher, Dir.children("."), Signal.trap("URG", "DEFAULT")])
        .to match([false, nil, [], a_kind_of(String)])
    ensure
      Signal.trap("URG", previous)
    end

    it "says so at level info" do
      logger = FakeLogger.new
      one = profiler(ENABLED: "off")
      one.integrate(flusher_class: MemprofilerPprof::FileFlusher, logger: logger)
      one.start
      expect(logger.messages).to eq([[:info, "not profiling: the setting enabled is false"]])
    end

    it "can be switched on by a source with higher precedence" do
      one = profiler(ENABLED: "on")
      one.configure { |config| config.enabled = false }
      expect(one.start).to be_running
    end
  end

  describe "#enabled?" do
    it "returns the setting" do
      expect([profiler, profiler(ENABLED: "0")].map(&:enabled?)).to eq([true, false])
    end

    it "is false if the environment is wrong" do
      expect(profiler(SEED: "x")).not_to be_enabled
    end
  end

  describe "#integrate" do
    # How often an integration was notified of a start, after each of these calls.
    def counts(*calls, one: profiler)
      count = 0
      integrate = -> { one.integrate(flusher_class: nil, logger: FakeLogger.new, on_start: -> { count += 1 }) }
      calls.map do |call|
        call == :integrate ? integrate.call : one.public_send(call)
        count
      end
    end

    it "calls back at each start" do
      expect(counts(:integrate, :start, :stop, :toggle)).to eq([0, 1, 1, 2])
    end

    it "calls back for an earlier start" do
      expect(counts(:start, :integrate)).to eq([0, 1])
    end

    it "does not call back if the profiler is switched off" do
      expect(counts(:integrate, :start, :toggle, one: profiler(ENABLED: "0"))).to eq([0, 0, 0])
    end

    describe "with a directory" do
      # Integrates a profiler with one that is not the current directory.
      def integrate(one)
        one.integrate(flusher_class: MemprofilerPprof::FileFlusher, logger: FakeLogger.new,
                      directory: File.join(Dir.pwd, "app"))
      end

      def integrated(**settings)
        profiler.tap do |one|
          integrate(one)
          one.start(sample_rate: 1, **settings)
        end
      end

      it "takes the names of profiles from there" do
        integrated(pattern: "a.pprof").stop
        expect(files).to eq(["app/a.pprof"])
      end

      it "takes the names of later profiles from there, too" do
        one = integrated(pattern: "a.pprof")
        one.start(pattern: "b.pprof")
        one.stop
        expect(files).to eq(["app/b.pprof"])
      end

      it "takes them from there if the profiler has started before" do
        one = profiler(SAMPLE_RATE: "1", PATTERN: "a.pprof")
        one.boot
        integrate(one)
        one.configure(:framework) { |config| config.interval = 9 }
        one.stop
        expect(files).to eq(["app/a.pprof"])
      end

      it "takes the name of the socket from there" do
        expect(integrated(socket: "a.sock").socket).to eq(File.join(Dir.pwd, "app/a.sock"))
      end

      it "takes the names of profiles of CPU time from there" do
        integrated(cpu: true, cpu_pattern: "cpu.pprof").stop
        expect(files).to eq(["app/cpu.pprof"])
      end

      it "makes the directory of files private although that of CPU time is in it" do
        one = profiler
        one.integrate(flusher_class: MemprofilerPprof::FileFlusher, logger: FakeLogger.new, directory: Dir.pwd)
        one.start(cpu: true, pattern: "p/a.pprof", cpu_pattern: "p/cpu/a.pprof")
        expect(File.stat("p").mode & 0o777).to eq(0o700)
      ensure
        one.stop
      end

      it "begins to sample CPU time when that is configured" do
        one = integrated(pattern: "a.pprof", cpu_pattern: "cpu.pprof")
        one.configure { |config| config.cpu = true }
        one.stop
        expect(files).to eq(%w[app/a.pprof app/cpu.pprof])
      end

      it "says which CPU time is lost when a file cannot be written" do
        FileUtils.mkdir_p("app")
        File.write("app/x", "in the way")
        one = profiler
        logger = FakeLogger.new
        one.integrate(flusher_class: MemprofilerPprof::FileFlusher, logger: logger,
                      directory: File.join(Dir.pwd, "app"))
        one.start(cpu: true, cpu_pattern: "x/cpu.pprof", files: false)
        one.stop
        expect(logger[:error]).to match([%r{cannot write .*/x/cpu\.pprof: .*; the CPU time since the last file is}])
      end

      it "writes a profile there when memory runs short" do
        one = integrated(pattern: "a.pprof", dump_above: 1 << 20)
        wait_until { File.exist?("app/a-oom.pprof") }
        one.stop
        expect(files).to eq(%w[app/a-oom.pprof app/a.pprof])
      end

      it "writes it next to the others if these go elsewhere since an earlier start" do
        one = profiler
        one.start(pattern: "a.pprof")
        integrate(one)
        one.configure(:framework) { |config| config.dump_above = 1 << 20 }
        wait_until { files.any? }
        expect(files).to eq(["a-oom.pprof"])
      end
    end
  end

  it "has one collector, whichever thread asks first" do
    one = profiler
    expect(Array.new(8) { Thread.new { one.collector } }.map(&:value).uniq.size).to eq(1)
  end
end
