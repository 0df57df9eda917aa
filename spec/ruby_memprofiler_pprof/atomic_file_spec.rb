# frozen_string_literal: true

require "pathname"
require "tmpdir"

RSpec.describe MemprofilerPprof::AtomicFile do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def files
    Dir.glob("**/*", File::FNM_DOTMATCH).reject { |path| File.directory?(path) }.sort
  end

  it "writes the bytes" do
    bytes = (0..255).to_a.pack("C*") * 1000
    described_class.create("a.pprof", bytes)
    expect(File.binread("a.pprof")).to eq(bytes)
  end

  it "writes the bytes as they are whatever the default encodings" do
    outcome = run_ruby('MemprofilerPprof::AtomicFile.create("a", "\xff\n\r\n".b)', options: ["-EISO-8859-1:UTF-8"])
    expect([outcome.stderr, File.binread("a")]).to eq(["", "\xff\n\r\n".b])
  end

  it "returns the name" do
    expect(described_class.create("x/a.pprof", "")).to eq("x/a.pprof")
  end

  it "makes the directory" do
    described_class.create("x/y/z/a.pprof", "bytes")
    expect(File.read("x/y/z/a.pprof")).to eq("bytes")
  end

  it "makes the directory when another process does so at the same time" do
    allow(Dir).to receive(:mkdir).and_wrap_original do |mkdir, name|
      mkdir.call(name)
      mkdir.call(name)
    end
    expect(described_class.create("x/a.pprof", "bytes")).to eq("x/a.pprof")
  end

  it "is readable by its owner only" do
    described_class.create("a.pprof", "bytes")
    expect(format("%o", File.stat("a.pprof").mode)).to eq("100600")
  end

  it "leaves no other file" do
    described_class.create("a.pprof", "bytes")
    expect(files).to eq(["a.pprof"])
  end

  it "replaces no file, but puts a number into the name" do
    names = Array.new(3) { |index| described_class.create("a.pprof", index.to_s) }
    expect(names.to_h { |name| [name, File.read(name)] })
      .to eq("a.pprof" => "0", "a_x1.pprof" => "1", "a_x2.pprof" => "2")
  end

  it "puts it so that names sort by age, also where only letters and digits count" do
    names = Array.new(3) { described_class.create("mem-20261231T235959Z.pprof", "") }
    expect(names.sort).to eq(names)
    expect(names.sort_by { |name| name.gsub(/\W|_/, "") }).to eq(names)
  end

  it "puts the number before .pb.gz" do
    expect(Array.new(2) { described_class.create("v1.2/a.pb.gz", "") }).to eq(%w[v1.2/a.pb.gz v1.2/a_x1.pb.gz])
  end

  it "appends the number to a name without an extension" do
    expect(Array.new(2) { described_class.create("v1.2/a", "") }).to eq(%w[v1.2/a v1.2/a_x1])
  end

  it "does not follow a link with that name" do
    File.symlink("elsewhere", "a.pprof")
    described_class.create("a.pprof", "bytes")
    expect(files).to eq(%w[a.pprof a_x1.pprof])
  end

  it "is not visible before it is complete" do
    seen = nil
    allow(File).to receive(:link).and_wrap_original do |link, *names|
      seen = [files.include?("a.pprof"), File.read(names.first)]
      link.call(*names)
    end
    described_class.create("a.pprof", "bytes")
    expect(seen).to eq([false, "bytes"])
  end

  it "is written completely by threads that compete for the name" do
    Array.new(8) { |index| Thread.new { described_class.create("x/a.pprof", index.to_s) } }.each(&:join)
    expect(files.map { |name| File.read(name) }.sort).to eq(%w[0 1 2 3 4 5 6 7])
  end

  it "is not written again by a child forked meanwhile" do
    outcome = run_ruby(<<~'RUBY')
      # Every write of this process is followed by a fork, like that of another thread in the middle of it.
      File.prepend(Module.new { def write(*) = super.tap { Process.wait(fork { GC.start }) } })
      MemprofilerPprof::AtomicFile.create("a.pprof", "bytes")
    RUBY
    expect([outcome.stderr, File.read("a.pprof")]).to eq(["", "bytes"])
  end

  context "without hard links" do
    before { allow(File).to receive(:link).and_raise(Errno::EPERM) }

    it "writes the file" do
      described_class.create("a.pprof", "bytes")
      expect(files.to_h { |name| [name, File.read(name)] }).to eq("a.pprof" => "bytes")
    end

    it "replaces no file" do
      expect(Array.new(2) { described_class.create("a.pprof", "") }).to eq(%w[a.pprof a_x1.pprof])
    end

    it "replaces no dangling link" do
      File.symlink("elsewhere", "a.pprof")
      expect(described_class.create("a.pprof", "")).to eq("a_x1.pprof")
    end
  end

  context "when it cannot be written" do
    # Nobody handles SIGXFSZ, which a write beyond the limit on the size of files would bring.
    let(:outcome) { run_ruby(<<~RUBY) }
      Process.setrlimit(:FSIZE, 1000)
      MemprofilerPprof::AtomicFile.create("a.pprof", "x" * 100_000)
    RUBY

    it "raises the system's error" do
      expect(outcome.stderr).to include("Errno::EFBIG")
    end

    it "leaves nothing behind" do
      outcome
      expect(files).to be_empty
    end

    it "leaves nothing behind if the disk is full halfway" do
      allow(File).to receive(:open).and_wrap_original do |open, *arguments|
        open.call(*arguments) { |file| file.write("x") && raise(Errno::ENOSPC) }
      end
      expect { described_class.create("a.pprof", "xx") }.to raise_error(Errno::ENOSPC)
      expect(files).to be_empty
    end

    it "raises when a file is in the directory's place" do
      File.write("x", "")
      expect { described_class.create("x/a.pprof", "") }.to raise_error(Errno::EEXIST)
    end

    it "names the file, not a temporary one", :aggregate_failures do
      expect { described_class.write("x/a.pprof", "") }
        .to raise_error(Errno::ENOENT, "No such file or directory @ write - x/a.pprof")
      expect(outcome.stderr).to include("File too large @ write - a.pprof")
    end

    it "hides no exception from outside, even before the file has a name" do
      allow(Random).to receive(:urandom).and_raise(Interrupt)
      expect { described_class.create("a.pprof", "") }.to raise_error(Interrupt)
    end
  end

  describe ".temporaries" do
    it "finds the temporary files of a directory" do
      name = ".memprofiler-0123456789abcdef.tmp"
      [name, "a#{name}"].each { |each| File.write(each, "") }
      expect(described_class.temporaries(".")).to eq(["./#{name}"])
    end

    it "leaves out names that are not valid" do
      File.write("\xff", "")
      expect(described_class.temporaries(".")).to eq([])
    rescue Errno::EILSEQ
      skip "no such file can exist here"
    end
  end

  describe ".matching" do
    it "finds files by their names" do
      FileUtils.touch(%w[a.pprof b.pprof c])
      expect(described_class.matching(".", /pprof/)).to contain_exactly("./a.pprof", "./b.pprof")
    end

    it "passes over names that are no text" do
      FileUtils.touch("a\xff".b)
      expect(described_class.matching(".", /a/)).to eq([])
    end

    it "finds nothing where there is no directory" do
      expect(described_class.matching("none", //)).to eq([])
    end

    # Beside a thread that computes, each turn is waited for.
    it "takes few turns, however many files there are", if: File.exist?("/proc/thread-self/status") do
      FileUtils.touch(Array.new(100) { |number| "#{number}.pprof" })
      turns = -> { File.read("/proc/thread-self/status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1].to_i }
      computing = Thread.new { loop { nil } }
      before = turns.call
      found = described_class.matching(".", /pprof/)
      taken = turns.call - before
      computing.kill
      expect([found.size, taken]).to match([100, be < 20])
    end
  end

  describe ".write" do
    it "replaces a file" do
      File.write("a.pprof", "old")
      described_class.write("a.pprof", "new")
      expect(files.to_h { |name| [name, File.read(name)] }).to eq("a.pprof" => "new")
    end

    it "leaves the old file when it cannot write the new" do
      File.write("a.pprof", "old")
      run_ruby('Process.setrlimit(:FSIZE, 10); MemprofilerPprof::AtomicFile.write("a.pprof", "n" * 100)')
      expect(files.to_h { |name| [name, File.read(name)] }).to eq("a.pprof" => "old")
    end

    it "writes through a link" do
      File.write("a.pprof", "old")
      File.symlink("a.pprof", "b.pprof")
      described_class.write("b.pprof", "new")
      expect([File.symlink?("b.pprof"), File.read("a.pprof")]).to eq([true, "new"])
    end

    it "writes to a named pipe without replacing it" do
      File.mkfifo("pipe")
      reader = Thread.new { File.read("pipe") }
      described_class.write("pipe", "bytes")
      expect([reader.value, File.pipe?("pipe")]).to eq(["bytes", true])
    end

    it "accepts a Pathname" do
      described_class.write(Pathname.new("a.pprof"), "bytes")
      expect(files).to eq(["a.pprof"])
    end

    it "creates no directory" do
      expect { described_class.write("x/a.pprof", "") }.to raise_error(Errno::ENOENT)
    end
  end
end
