# frozen_string_literal: true

require "timeout"
require "tmpdir"
require "zlib"

# Profiles contain names of classes and files: who can read them, and how others could attack the process that writes
# them.
RSpec.describe "security" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:profile) { new_collector(sample_rate: 1.0).profile { Object.new } }

  def mode(path)
    format("%o", File.lstat(path).mode & 0o7777)
  end

  def with_umask(umask)
    before = File.umask(umask)
    yield
  ensure
    File.umask(before)
  end

  # A directory like /tmp.
  def shared_directory
    Dir.mkdir("shared")
    File.chmod(0o1777, "shared")
    "shared"
  end

  {
    "AtomicFile.create" => ->(profile, path) { MemprofilerPprof::AtomicFile.create(path, profile.pprof_data) },
    "ProfileData#write" => ->(profile, path) { profile.write(path) },
    "Profile#write" => ->(profile, path) { MemprofilerPprof::Profile.load(profile.pprof_data).write(path) },
    "MemprofilerPprof.profile" => ->(_, path) { MemprofilerPprof.profile(out: path) { Object.new } }
  }.each do |name, write|
    it "creates files that only their owner can read with #{name}, whatever the umask" do
      with_umask(0) { write.call(profile, "a.pprof") }
      expect(mode("a.pprof")).to eq("600")
    end

    it "writes nothing through a link to nowhere with #{name}" do
      File.symlink("elsewhere", "a.pprof")
      write.call(profile, "a.pprof")
      expect(File.exist?("elsewhere")).to be(false)
    end

    it "uses no existing temporary file with #{name}" do
      # An attacker who knew the random name could put a link there.
      allow(Random).to receive(:urandom).and_return("12345678")
      File.symlink("elsewhere", ".memprofiler-3132333435363738.tmp")
      expect { write.call(profile, "a.pprof") }.to raise_error(SystemCallError)
        .and(not_change { File.exist?("elsewhere") })
    end
  end

  it "narrows the mode of a file that it replaces" do
    File.write("a.pprof", "")
    File.chmod(0o644, "a.pprof")
    profile.write("a.pprof")
    expect(mode("a.pprof")).to eq("600")
  end

  it "creates directories that only their owner can enter, whatever the umask" do
    with_umask(0) { MemprofilerPprof::AtomicFile.create("x/y/a.pprof", "") }
    expect(mode("x/y")).to eq("700")
  end

  it "leaves the mode of their parents to the umask" do
    with_umask(0o022) { MemprofilerPprof::AtomicFile.create("x/y/a.pprof", "") }
    expect(mode("x")).to eq("755")
  end

  it "follows a link to a directory, as its user intends" do
    Dir.mkdir("real")
    File.symlink("real", "link")
    MemprofilerPprof::AtomicFile.create("link/a.pprof", "bytes")
    expect(File.read("real/a.pprof")).to eq("bytes")
  end

  context "when somebody else owns a link in a world-writable directory" do
    before do
      skip "only root can give files away" unless Process.euid.zero?
      # The directory does not belong to the owner either, as root's /tmp does not belong to a user.
      File.chown(1, 1, shared_directory)
    end

    def plant(path)
      File.lchown(2, 2, path)
    end

    it "does not follow it" do
      File.write("precious", "old")
      File.symlink("../precious", "shared/a.pprof")
      plant("shared/a.pprof")
      profile.write("shared/a.pprof")
      expect([File.read("precious"), File.symlink?("shared/a.pprof")]).to eq(["old", false])
    end

    it "does not write to a pipe" do
      File.mkfifo("shared/a.pprof")
      plant("shared/a.pprof")
      # Writing to a pipe waits for a reader.
      Timeout.timeout(60) { profile.write("shared/a.pprof") }
      expect(File.file?("shared/a.pprof")).to be(true)
    end
  end

  it "expands no part of a pattern to anything that could leave its directory" do
    values = { index: 12, pid: 34, time: Time.at(0) }
    pattern = "%{pid}-%{isotime}-%{unixtime}-%{index}-%<index>05d-%%"
    expect(MemprofilerPprof::FilePattern.new(pattern).expand(**values))
      .to eq(File.join(Dir.pwd, "34-19700101T000000Z-0-12-00012-%"))
  end

  ["%{class}", "%{label}", "%{../../x}", "%<class>s", "%p", "%x"].each do |pattern|
    it "refuses the pattern #{pattern}, so that no value of the program gets into names" do
      expect { MemprofilerPprof::FilePattern.new(pattern) }.to raise_error(ArgumentError, /pattern: /)
    end
  end

  it "refuses a gzip of gigabytes in little memory and time" do
    skip "no /proc to ask for the memory" unless File.exist?("/proc/self/status")

    # 8 GiB of zeros: 128 members of 64 MiB each.
    File.binwrite("bomb", Zlib.gzip("\0" * (64 << 20)) * 128)
    outcome = run_ruby(<<~RUBY)
      peak = -> { File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i / 1024 }
      before = peak.call
      begin
        MemprofilerPprof::Profile.load("bomb", max_bytes: 100 << 20)
      rescue MemprofilerPprof::ProfileError => e
        puts e.message
      end
      puts peak.call - before
    RUBY
    message, megabytes = outcome.stdout.lines
    expect([message, megabytes.to_i]).to match([/\Abomb: .*104857600/, be < 300])
  end
end
