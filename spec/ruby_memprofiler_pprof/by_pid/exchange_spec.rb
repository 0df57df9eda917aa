# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid/exchange"
require "ruby_memprofiler_pprof/by_pid/subject"

RSpec.describe "MemprofilerPprof::ByPid::Exchange", if: RUBY_PLATFORM.include?("linux") do
  let(:subject_class) { MemprofilerPprof::ByPid::Subject }
  let(:type) { MemprofilerPprof::ByPid::Exchange }

  # A process whose files are below a directory.
  def process_below(directory)
    instance_double(subject_class, pid: 7, own_pid: 7, owner: [Process.euid, Process.egid]).tap do |process|
      allow(process).to receive(:file) { |path| "#{directory}#{path}" }
    end
  end

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  it "has a directory and files that only the owner can read, for the time of the block" do
    Dir.mkdir("tmp")
    File.chmod(0o1777, "tmp")
    directory = nil
    type.open(process_below(Dir.pwd)) do |exchange|
      path = exchange.write("a.rb", "1")
      directory = File.dirname("#{Dir.pwd}#{path}")
      expect(File.stat(directory).mode & 0o777).to eq(0o700)
      expect(File.stat("#{Dir.pwd}#{path}").mode & 0o777).to eq(0o600)
    end
    expect(File.exist?(directory)).to be(false)
  end

  it "keeps away from a directory in which others can rename files" do
    %w[tmp dev dev/shm].each { |directory| Dir.mkdir(directory) }
    File.chmod(0o777, "tmp")
    File.chmod(0o1777, "dev/shm")
    type.open(process_below(Dir.pwd)) { |exchange| expect(exchange.parent).to eq("/dev/shm") }
  end

  it "follows no links" do
    %w[elsewhere elsewhere/tmp run].each { |directory| Dir.mkdir(directory) }
    File.symlink("#{Dir.pwd}/elsewhere/tmp", "tmp")
    File.symlink("#{Dir.pwd}/elsewhere", "var")
    type.open(process_below(Dir.pwd)) { |exchange| expect(exchange.parent).to eq("/run") }
  end

  it "is not led elsewhere by a link that takes its place" do
    %w[tmp victim].each { |directory| Dir.mkdir(directory) }
    File.write("victim/kept", "")
    type.open(process_below(Dir.pwd)) do |exchange|
      directory = File.dirname("#{Dir.pwd}#{exchange.path("a")}")
      File.rename(directory, "moved")
      File.symlink("#{Dir.pwd}/victim", directory)
      exchange.write("a", "1")
      expect(Dir.children("moved")).to eq(["a"])
    end
    expect([Dir.children("victim"), Dir.children("moved")]).to eq([["kept"], []])
  end

  it "leaves nothing behind if the process ends meanwhile" do
    Dir.mkdir("run")
    process = process_below(Dir.pwd)
    type.open(process) do |exchange|
      exchange.write("a", "1")
      allow(process).to receive(:file) { |path| "/proc/2147483647/root#{path}" }
    end
    expect(Dir.children("run")).to eq([])
  end

  it "keeps its name while the process may look into it", :aggregate_failures do
    Dir.mkdir("run")
    expect { type.open(process_below(Dir.pwd)) { |exchange| exchange.write("a", "1") && exchange.promise } }
      .to output(%r{process 7 may still .* look into the directory /run/memprofiler-attach-7-}).to_stderr
    expect([Dir.children("run").size, Dir.children(Dir.glob("run/*").first)]).to eq([1, []])
  end

  it "leaves nothing behind where it fails" do
    Dir.mkdir("run")
    allow(File).to receive(:open).and_wrap_original do |original, path, *rest|
      raise Errno::EACCES if path.include?("memprofiler-attach")

      original.call(path, *rest)
    end
    expect { type.open(process_below(Dir.pwd)) { nil } }
      .to raise_error(MemprofilerPprof::ByPid::Error, %r{/run: Permission denied})
    expect(Dir.children("run")).to eq([])
  end

  it "says which directories there should be" do
    expect { type.open(process_below(Dir.pwd)) { nil } }
      .to raise_error(MemprofilerPprof::ByPid::Error, %r{/tmp, /var/tmp, /dev/shm, /run})
  end

  it "reads the answer from a link" do
    Dir.mkdir("run")
    type.open(process_below(Dir.pwd)) do |exchange|
      expect(exchange.answer("answer")).to be_nil
      File.symlink("ok é", "#{Dir.pwd}#{exchange.path("answer")}")
      expect(exchange.answer("answer")).to eq("ok é")
    end
  end
end
