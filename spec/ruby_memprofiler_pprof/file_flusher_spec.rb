# frozen_string_literal: true

require "tmpdir"

RSpec.describe MemprofilerPprof::FileFlusher, :liveness, :threads do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:collector) { FakeCollector.new }
  let(:logger) { FakeLogger.new }

  def new_flusher(**options)
    described_class.new(collector, interval: 0.01, logger: logger, **options)
  end

  # Runs until there are this many files, and returns all of them.
  def files_of(flusher, number: 1)
    flusher.run { wait_until(what: "#{number} files") { files.size >= number } }
    files
  end

  def files
    Dir.glob("**/*.pprof")
  end

  it "is a block flusher" do
    expect(new_flusher).to be_a(MemprofilerPprof::BlockFlusher)
  end

  it "writes to tmp/profiles by default" do
    expect(files_of(new_flusher)).to all(match(%r{\Atmp/profiles/mem-#{Process.pid}-\d{8}T\d{6}Z(_x\d+)?\.pprof\z}))
  end

  it "writes the flushed profile" do
    name, = files_of(new_flusher(pattern: "%{index}.pprof"))
    expect(File.read(name)).to eq("profile 1")
  end

  it "writes one file per flush, numbered by index" do
    files_of(new_flusher(pattern: "x/%{index}.pprof"), number: 3)
    expect(%w[0 1 2].map { |index| File.read("x/#{index}.pprof") }).to eq(["profile 1", "profile 2", "profile 3"])
  end

  it "replaces no file, whatever the pattern" do
    files_of(new_flusher(pattern: "a.pprof"), number: 3)
    expect(%w[a a_x1 a_x2].map { |name| File.read("#{name}.pprof") }).to eq(["profile 1", "profile 2", "profile 3"])
  end

  it "writes to the directory in which it was created" do
    flusher = new_flusher(pattern: "a.pprof")
    Dir.mkdir("other")
    Dir.chdir("other") { flusher.start!.stop! }
    expect(files).to eq(["a.pprof"])
  end

  it "logs each file at level info" do
    new_flusher(pattern: "a.pprof", interval: 1000).start!.stop!
    expect(logger.messages).to match([[:info, /wrote .*a\.pprof/]])
  end

  it "returns its pattern as it was given" do
    expect(new_flusher(pattern: "x/%{pid}").pattern).to eq("x/%{pid}")
  end

  it "writes to the directory of a pattern that has one" do
    new_flusher(pattern: MemprofilerPprof::FilePattern.new("a.pprof", directory: File.join(Dir.pwd, "x"))).start!.stop!
    expect(files).to eq(["x/a.pprof"])
  end

  it "writes to a new pattern as soon as it is set" do
    flusher = new_flusher(pattern: "a.pprof")
    flusher.pattern = "b.pprof"
    flusher.start!.stop!
    expect(files).to eq(["b.pprof"])
  end

  it "immediately refuses a wrong pattern" do
    expect { new_flusher(pattern: "%{time}") }.to raise_error(ArgumentError, /unknown key "time", allowed are pid/)
  end

  it "immediately refuses a wrong new pattern, and keeps the old one" do
    flusher = new_flusher(pattern: "a.pprof")
    expect { flusher.pattern = "%{time}" }.to raise_error(ArgumentError)
    expect(flusher.pattern).to eq("a.pprof")
  end

  it "passes each profile on after writing it" do
    seen = []
    on_flush = ->(profile) { seen << [profile.pprof_data, Dir["a-*"]] }
    new_flusher(pattern: "a-%{index}", interval: 1000, on_flush: on_flush).start!.stop!
    expect(seen).to eq([["profile 1", ["a-0"]]])
  end

  it "takes a block in place of on_flush" do
    seen = []
    described_class.new(collector, pattern: "a", interval: 1000) { |profile| seen << profile.pprof_data }.start!.stop!
    expect(seen).to eq([File.binread("a")])
  end

  it "keeps the file if on_flush fails" do
    new_flusher(pattern: "a", interval: 1000, on_flush: ->(_) { raise "no" }).start!.stop!
    expect(File.read("a")).to eq("profile 1")
    expect(logger[:error]).to match([/flushing failed: RuntimeError: no/])
  end

  it "flushes with the names it is given" do
    new_flusher(interval: 1000, sample_type_names: :go).start!.stop!
    expect(collector.flushes.first[:options]).to include(sample_type_names: :go)
    expect { new_flusher(sample_type_names: "go") }
      .to raise_error(TypeError, /sample_type_names must be :ruby or :go, got "go"/)
  end

  describe "old files" do
    def flush(flusher, times)
      times.times { flusher.start!.stop! }
      flusher
    end

    it "are thinned to a given number, and the first one stays" do
      flush(new_flusher(pattern: "%{index}.pprof", interval: 1000, keep_files: 4), 9)
      expect([files.size, files.minmax]).to eq([4, ["0.pprof", "8.pprof"]])
    end

    it "of the parent are left alone by a forked child" do
      run_ruby(<<~'RUBY')
        flusher = MemprofilerPprof::FileFlusher.new(new_collector.start, pattern: "%{pid}-%{index}.pprof", keep_files: 2)
        2.times { flusher.start!.stop! }
        Process.wait(fork { 3.times { flusher.start!.stop! } })
      RUBY
      expect(files.group_by { |name| name[/\A\d+/] }.values.map(&:size)).to eq([2, 2])
    end

    it "of ended processes are removed after a number of days" do
      data = MemprofilerPprof.profile { Object.new }.pprof_data
      { "1-1.pprof" => 3, "1-1-oom.pprof" => 3, "2-1.pprof" => 1 }.each do |name, days|
        File.binwrite(name, data)
        File.utime(Time.now, Time.now - (days * 86_400), name)
      end
      flush(new_flusher(pattern: "%{pid}-%{unixtime}.pprof", interval: 1000, keep_days: 2), 1)
      expect(files.size).to eq(2)
      expect(files).to include("2-1.pprof")
    end

    it "of its own are touched once an hour" do
      time = Time.now
      allow(Time).to receive(:now) { time }
      flusher = flush(new_flusher(pattern: "%{index}.pprof", interval: 1000), 1)
      mtimes = [3599, 3601].map do |seconds|
        time += seconds
        flush(flusher, 1)
        File.mtime("0.pprof")
      end
      expect(mtimes.map { |mtime| mtime > time - 60 }).to eq([false, true])
    end

    it "that cannot be read do not prevent writing" do
      allow(MemprofilerPprof::AbandonedFiles).to receive(:new).and_raise("no such luck")
      flush(new_flusher(pattern: "a.pprof", interval: 1000), 1)
      expect([files, logger[:error]]).to match([["a.pprof"], [/old files were not removed: .*no such luck/]])
    end
  end

  describe "who holds the heap" do
    # A collector that answers or raises.
    def recording(*answers)
      asked = []
      collector.define_singleton_method(:retainers) do |**options|
        asked << options
        answer = answers.size > 1 ? answers.shift : answers.first
        answer.is_a?(Exception) ? raise(answer) : answer
      end
      asked
    end

    let(:answer) { RecordedRetainers.retainers }

    def flush(flusher, times)
      times.times { flusher.start!.stop! }
    end

    it "is not asked unless that is set" do
      asked = recording(answer)
      flush(new_flusher(interval: 1000), 3)
      expect(asked).to eq([])
    end

    it "is recorded with each so many files, beside them" do
      asked = recording(answer)
      flush(new_flusher(pattern: "x/%{index}.pb.gz", interval: 1000, retainers_every: 2), 5)
      expect(Dir.children("x").sort)
        .to eq(%w[0.pb.gz 1.pb.gz 1.retainers.pprof 2.pb.gz 3.pb.gz 3.retainers.pprof 4.pb.gz])
      expect([File.binread("x/1.retainers.pprof"), File.stat("x/1.retainers.pprof").mode & 0o777])
        .to eq([answer.pprof_data, 0o600])
      expect(asked).to eq([{ timeout: 10 }] * 2)
    end

    it "comes with the next file if another process is at it" do
      asked = recording(answer)
      flusher = new_flusher(pattern: "%{index}.pprof", interval: 1000, retainers_every: 2)
      flush(flusher, 1)
      File.open(".") do |directory|
        directory.flock(File::LOCK_EX)
        flush(flusher, 1)
      end
      expect(asked).to eq([])
      flush(flusher, 2)
      expect(files.grep(/retainers/)).to contain_exactly("2.retainers.pprof", "3.retainers.pprof")
    end

    it "is kept and removed with its profile" do
      recording(answer)
      flush(new_flusher(pattern: "%{index}.pprof", interval: 1000, retainers_every: 1, keep_files: 2), 4)
      expect(files.sort).to eq(%w[0.pprof 0.retainers.pprof 3.pprof 3.retainers.pprof])
    end

    it "is not among the profiles of the process" do
      recording(answer)
      flusher = new_flusher(pattern: "a.pprof", interval: 1000, retainers_every: 1)
      flush(flusher, 1)
      expect(flusher.profiles.map { |path| File.basename(path) }).to eq(["a.pprof"])
    end

    it "is missing if it cannot be found out, as the log says, and the profile is written" do
      recording(MemprofilerPprof::RetainersError.new("memory is short"), answer)
      flush(new_flusher(pattern: "%{index}.pprof", interval: 1000, retainers_every: 1), 2)
      expect(logger[:warn])
        .to match([/who holds the heap was not recorded: memory is short \(MemprofilerPprof::RetainersError\)/])
      expect([files.sort, logger[:error]]).to eq([%w[0.pprof 1.pprof 1.retainers.pprof], []])
    end
  end

  describe "the peak of memory" do
    # A collector whose highest resident bytes are these, one after the other.
    def peaks(*bytes, track: true)
      collector.define_singleton_method(:track_peak) { track }
      collector.define_singleton_method(:stats) { { tracked_peak_rss_bytes: bytes.first } }
      collector.define_singleton_method(:peak_profile) do |**options|
        raise ArgumentError, options.inspect unless options == { max_hold: 0.1 }

        FakeCollector::Profile.new("peak #{bytes.first}")
      end
      collector.define_singleton_method(:flush) { |**options| super(**options).tap { bytes.shift if bytes.size > 1 } }
    end

    # What is in the peak's file after each of some flushes.
    def after_flushes(times, **options)
      flusher = new_flusher(pattern: "%{index}.pprof", interval: 1000, max_hold: 0.1, **options)
      Array.new(times) do
        flusher.start!.stop!
        files.grep(/peak/).to_h { |path| [path, File.read(path)] }
      end
    end

    it "is beside the first profile, and replaced by a higher one" do
      peaks(nil, 10, 10, 30)
      expect(after_flushes(4)).to eq([{}, *([{ "0.peak.pprof" => "peak 10" }] * 2), { "0.peak.pprof" => "peak 30" }])
      expect(File.stat("0.peak.pprof").mode & 0o777).to eq(0o600)
    end

    it "stays beside the first profile when another one is the first" do
      peaks(10, 10, 30)
      expect(after_flushes(3, keep_files: 1))
        .to eq([{ "0.peak.pprof" => "peak 10" }, { "1.peak.pprof" => "peak 10" }, { "2.peak.pprof" => "peak 30" }])
    end

    it "is written once" do
      peaks(10)
      flusher = new_flusher(pattern: "%{index}.pprof", interval: 1000, max_hold: 0.1)
      flusher.start!.stop!
      File.write("0.peak.pprof", "mine")
      flusher.start!.stop!
      expect(File.read("0.peak.pprof")).to eq("mine")
    end

    it "is not written unless it is tracked" do
      peaks(10, track: false)
      expect(after_flushes(2)).to eq([{}, {}])
    end

    it "is missing if it cannot be had, as the log says, and the profile is written" do
      peaks(10)
      collector.define_singleton_method(:peak_profile) { |**| raise "no such luck" }
      expect(after_flushes(1)).to eq([{}])
      expect(logger[:warn]).to match([/the peak of memory was not recorded: no such luck \(RuntimeError\)/])
      expect(files).to eq(["0.pprof"])
    end

    it "is removed with the first profile when the process has ended" do
      profile = Pprof::Maker.lines({ "/a.rb:1" => [0, 1] }, comments: { greatest_weight: 1 }).to_s
      %w[a-1.pprof a-1.peak.pprof].each { |name| File.binwrite(name, profile) && File.utime(0, 0, name) }
      MemprofilerPprof::AbandonedFiles.new(MemprofilerPprof::FilePattern.new("a-%{pid}.pprof"), 7).remove(Time.now)
      expect(files).to eq([])
    end
  end

  { retainers_every: [-1, 1.5, nil], keep_files: [-1, 1.5, nil],
    keep_days: [-1, "7", Float::NAN] }.each do |name, values|
    values.each do |value|
      it "refuses #{name}: #{value.inspect}" do
        expect { new_flusher(name => value) }.to raise_error(/#{name} must be/)
      end
    end
  end

  context "when it cannot write" do
    before { File.write("x", "in the way") }

    it "still passes the profile on" do
      seen = []
      new_flusher(pattern: "x/a", interval: 1000, on_flush: ->(profile) { seen << profile.pprof_data }).start!.stop!
      expect(seen).to eq(["profile 1"])
    end

    it "logs what went wrong and what is lost" do
      new_flusher(pattern: "x/%{index}.pprof", interval: 1000).start!.stop!
      expect(logger[:error]).to match([%r{cannot write .*/x/0\.pprof: .*exists.*; .* are lost \(2 samples\)}])
    end

    it "tries again at the next interval" do
      flusher = new_flusher(pattern: "x/%{index}.pprof")
      flusher.run do
        wait_until { logger[:error].size > 1 }
        File.unlink("x")
        wait_until { files.any? }
      end
      expect(files).to include("x/0.pprof")
    end
  end

  it "logs that files may not be so large, leaves no part of one and continues" do
    outcome = run_ruby(<<~'RUBY')
      _, hard = Process.getrlimit(:FSIZE)
      Process.setrlimit(:FSIZE, 10, hard)
      flusher = MemprofilerPprof::FileFlusher.new(new_collector.start, pattern: "%{index}.pprof")
      flusher.start!.stop!
      p Dir.children(".")
      Process.setrlimit(:FSIZE, hard, hard)
      flusher.start!.stop!
      p Dir.children(".")
    RUBY
    expect(outcome).to have_attributes(stdout: %([]\n["0.pprof"]\n), stderr: /cannot write .*0\.pprof: File too large/)
  end

  context "with a collector" do
    it "writes profiles that can be decoded" do
      collector = new_collector(sample_rate: 1.0).start
      flusher = described_class.new(collector, pattern: "a.pprof").start!
      kept = Array.new(10) { Object.new }
      flusher.stop!
      expect(Pprof.decode(File.binread("a.pprof")).by_class["Object"]).to eq(kept.size)
    end

    # In a fresh process: code allocates more the first time it runs.
    it "keeps its own thread's allocations out of the profiles" do
      run_ruby(<<~'RUBY')
        collector = new_collector(sample_rate: 1.0).start
        flusher = MemprofilerPprof::FileFlusher.new(collector, interval: 0.02, pattern: "%{index}.pprof")
        flusher.run { sleep 0.01 until File.exist?("3.pprof") }
      RUBY
      samples = files.flat_map { |name| Pprof.decode(File.binread(name)).samples }
      expect(samples.select { |sample| sample.frames.last&.file.to_s.end_with?("periodic_thread.rb") }).to be_empty
    end

    # In parent and child: what was allocated before the fork, after it in the same process, and in the other one.
    it "writes for parent and child what each allocated" do
      outcome = run_ruby(<<~'RUBY')
        collector = new_collector(sample_rate: 1.0).start
        MemprofilerPprof::FileFlusher.new(collector, pattern: "%{pid}-%{index}.pprof").start!
        Common, Own, Other = Array.new(3) { Class.new }
        KEPT = [Common.new]
        child = fork { KEPT << Other.new }
        KEPT << Own.new
        Process.wait(child)
        print child
      RUBY
      child, parent = files.partition { |name| name == "#{outcome.stdout}-0.pprof" }
      classes = [parent, child].map { |names| Pprof.decode(File.binread(*names)).by_class }
      expect(classes.map { |counts| counts.slice("Common", "Own", "Other") })
        .to eq([{ "Common" => 1, "Own" => 1 }, { "Common" => 1, "Other" => 1 }])
    end
  end

  it "counts a child's files from 0" do
    outcome = run_ruby(<<~'RUBY')
      collector = new_collector.start
      flusher = MemprofilerPprof::FileFlusher.new(collector, pattern: "%{pid}-%{index}.pprof")
      2.times { flusher.start!.stop! }
      pid = fork { flusher.start!.stop! }
      Process.wait(pid)
      print pid
    RUBY
    expect(files).to include("#{outcome.stdout}-0.pprof")
  end

  it "activates no default gem, which might not be the version in the program's Gemfile.lock" do
    code = "collector = new_collector.start
            MemprofilerPprof::FileFlusher.new(collector).start!.stop!
            print Gem.loaded_specs.keys.join(' ')"
    loaded = run_ruby(code, options: ["--disable-did_you_mean", "--disable-error_highlight"], gems: true)
    expect(loaded.stdout.split - run_command(RbConfig.ruby, "-e", "print Gem.loaded_specs.keys.join(' ')").stdout.split)
      .to be_empty
  end
end
