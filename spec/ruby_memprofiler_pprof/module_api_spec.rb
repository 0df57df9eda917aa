# frozen_string_literal: true

require "tmpdir"

RSpec.describe MemprofilerPprof, :moving, :threads do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # Runs code in its own process; all of it concerns the process's one profiler.
  def outcome_of(code, **env)
    run_ruby("M = MemprofilerPprof; #{code}", env: env.transform_keys { |name| "RUBY_MEMPROFILER_PPROF_#{name}" })
  end

  def stdout_of(code, **env)
    outcome = outcome_of(code, **env)
    expect(outcome).to have_attributes(success?: true, stderr: ""), outcome.to_s
    outcome.stdout
  end

  it "profiles the process from start to stop" do
    expect(stdout_of(<<~RUBY)).to eq("falsetruefalse")
      M.configure { |config| config.sample_rate = 1 }
      print M.running?
      M.start
      print M.running?
      kept = Array.new(20) { Class.new }
      M.stop
      print M.running?
      M.flush.write("last")
    RUBY
    expect(Pprof.decode(File.binread("last")).by_class["Class"]).to be >= 20
  end

  it "flushes to a file if a name is given" do
    expect(stdout_of('M.start; print M.flush(out: "a").pprof_data == File.binread("a")')).to eq("true")
  end

  it "makes the directory of the file that it flushes to" do
    expect(stdout_of('M.start; print M.flush(out: "a/b/c").pprof_data == File.binread("a/b/c")')).to eq("true")
  end

  it "ends no interval if the directory of the file cannot be created" do
    File.write("taken", "")
    expect(stdout_of(<<~RUBY)).to eq("Errno::EEXIST true")
      M.start(sample_rate: 1)
      kept = Array.new(20) { Object.new }
      begin
        M.flush(out: "taken/a")
      rescue SystemCallError => e
        print e.class, " "
      end
      print M.flush.allocation_samples_count >= kept.size
    RUBY
  end

  it "flushes as configured, unless the call overrides it" do
    code = <<~RUBY
      seen = []
      M.collector.define_singleton_method(:flush) { |**options| seen << options[:yield_gvl] }
      M.configure { |config| config.yield_gvl = false }
      M.flush
      M.flush(yield_gvl: true)
      p seen
    RUBY
    expect(stdout_of(code)).to eq("[false, true]\n")
  end

  it "cannot flush before the start" do
    expect(stdout_of("M.flush rescue print $!.class")).to eq("MemprofilerPprof::NotStartedError")
  end

  it "cannot be used off the main Ractor" do
    names = %i[start stop flush running? config configure collector flusher retainers profile]
    expect(stdout_of(<<~RUBY)).to eq("#{names.to_h { |name| [name, "MemprofilerPprof::RactorError"] }}\n")
      $VERBOSE = nil
      ractor = Ractor.new do
        #{names}.to_h do |name|
          [name, (M.public_send(name) { nil } rescue $!.class.name)]
        end
      end
      p ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
  end

  it "reads its settings from the environment, when it is first used" do
    expect(stdout_of("print M.collector.max_frames, M.config.interval", MAX_FRAMES: "7", INTERVAL: "2"))
      .to eq("72.0")
  end

  it "fails immediately if the environment is wrong" do
    expect(outcome_of("M.start", INTERVAL: "-1"))
      .to have_attributes(success?: false, stderr: /PPROF_INTERVAL must be .*, got "-1" \(ArgumentError/)
  end

  it "works in a deleted directory" do
    expect(stdout_of(<<~RUBY)).to eq("3true3false")
      Dir.chdir(Dir.mkdir("gone") && "gone")
      Dir.rmdir(File.join("..", "gone"))
      M.configure { |config| config.seed = 3 }
      print M.config.seed
      M.start(max_frames: 4)
      print M.running?
      M.stop
      print M.config.seed, M.running?
    RUBY
  end

  it "writes files while it runs, in forked children too" do
    stdout_of('M.start(pattern: "%{pid}", sample_rate: 1); Process.wait(fork { exit }); KEPT = Object.new; M.stop')
    expect(Dir.children(".").size).to eq(2)
  end

  it "can be used in a child that was forked while another thread held its lock" do
    code = <<~RUBY
      M.start(pattern: "%{pid}")
      lock = M.profiler.instance_variable_get(:@mutex)
      held = Queue.new
      Thread.new { lock.synchronize { held << 1; sleep } }
      held.pop
      child = fork { M.configure { |config| config.sample_rate = 1 }; KEPT = Object.new; M.stop }
      Process.wait(child)
      $stdout.syswrite([$?.exitstatus, File.file?(child.to_s)].join)
      exit!
    RUBY
    expect(outcome_of(code).stdout).to eq("0true")
  end

  it "can be called by many threads at once" do
    code = <<~RUBY
      threads = Array.new(8) do |number|
        Thread.new do
          20.times { M.start(pattern: "%{index}"); M.configure { |config| config.max_frames = number + 1 }; M.stop }
        end
      end
      threads.each(&:join)
      print M.running?, M.flusher.inspect
      # Ruby 3.4 with M:N threads now and then crashes when it ends after that.
      $stdout.flush
      exit!(true)
    RUBY
    expect(stdout_of(code)).to eq("falsenil")
  end

  it "requires a block for configure" do
    expect { described_class.configure }.to raise_error(ArgumentError, "configure needs a block")
  end

  describe ".profile" do
    it "profiles every object of a block" do
      kept = nil
      profile = Pprof.decode(described_class.profile { kept = Array.new(20) { Class.new } })
      expect(profile.by_class["Class"]).to be >= kept.size
    end

    it "is exact for any reasonable number of live objects" do
      kept = nil
      profile = Pprof.decode(described_class.profile { kept = Array.new(120_000) { Object.new } })
      expect(profile.by_class["Object"]).to be >= kept.size
      expect(profile.comments.grep(/thinned/)).to eq([])
    end

    it "warns if samples were dropped" do
      outcome = outcome_of('M.profile(max_heap_samples: 100, out: "a") { KEPT = Array.new(500) { Object.new } }')
      expect(outcome.stderr)
        .to match(/WARN .* \d+ samples .* dropped because of max_heap_samples \(100\), so its figures are estimates/)
      expect(Pprof.decode(File.binread("a")).comments).to include(/\Athinned_samples=\d+/)
    end

    it "samples always, whatever is configured for the process" do
      code = "M.configure { |config| config.sampling = :windows }; " \
             "print M.profile { nil }.profile.comments.grep(/^sampling=/).first"
      expect(stdout_of(code)).to eq("sampling=always: sampling is :always")
    end

    it "writes the profile to a file if a name is given" do
      profile = described_class.profile(out: "a.pb.gz") { Object.new }
      expect(File.binread("a.pb.gz")).to eq(profile.pprof_data)
    end

    it "uses a collector of its own" do
      running = described_class.profile { described_class.collectors.size }
      expect(running).to be_a(described_class::ProfileData)
      expect(described_class).not_to be_running
    end

    it "takes settings of the collector and of the flush" do
      profile = described_class.profile(sample_rate: 0, max_frames: 3, yield_gvl: false) { Object.new }
      expect(profile.heap_samples_count).to eq(0)
    end

    it "takes all other settings from the configuration" do
      code = 'M.configure { |config| config.sample_type_names = :go; config.sample_rate = 0 }; M.profile(out: "a") {}'
      stdout_of(code)
      expect(Pprof.decode(File.binread("a")).sample_types.map(&:first)).to include("inuse_space")
    end

    it "releases everything if the block raises" do
      expect { described_class.profile { raise "no" } }.to raise_error("no")
      expect(described_class.collectors).to eq([])
    end

    it "refuses an unknown setting, before the block is called" do
      expect { |block| expect { described_class.profile(interval: 3, &block) }.to raise_error(ArgumentError, /interv/) }
        .not_to yield_control
    end

    it "refuses a wrong setting, before the block is called" do
      expect { |block| expect { described_class.profile(seed: -3, &block) }.to raise_error(ArgumentError, /seed must/) }
        .not_to yield_control
    end

    it "makes the directory of the file, before the block is called" do
      made = nil
      described_class.profile(out: "a/b/c") { made = File.directory?("a/b") }
      expect([made, File.file?("a/b/c")]).to eq([true, true])
    end

    it "fails before the block is called if the directory cannot be created" do
      File.write("taken", "")
      expect { |block| expect { described_class.profile(out: "taken/a", &block) }.to raise_error(Errno::EEXIST) }
        .not_to yield_control
    end

    it "requires a block" do
      expect { described_class.profile }.to raise_error(ArgumentError, "profile needs a block")
    end
  end
end
