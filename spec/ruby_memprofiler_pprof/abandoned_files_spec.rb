# frozen_string_literal: true

require "tmpdir"
require_relative "../support/pprof/crafted"

RSpec.describe MemprofilerPprof::AbandonedFiles do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:profile) { MemprofilerPprof.profile { Object.new }.pprof_data }
  let(:now) { Time.now }

  # Creates a file that was written some hours ago.
  def make(name, hours, bytes = profile)
    File.binwrite(name, bytes)
    File.utime(now - (hours * 3600), now - (hours * 3600), name)
    name
  end

  def remove(pattern = "mem-%{pid}-%{isotime}.pprof", days: 1)
    described_class.new(MemprofilerPprof::FilePattern.new(pattern), days).remove(now)
    Dir.glob("*", File::FNM_DOTMATCH).grep_v(/\A\.+\z/).sort
  end

  it "removes files older than a number of days" do
    make("mem-1-20260101T000000Z.pprof", 25)
    make("mem-1-20260101T000000Z_x1.pprof", 25)
    young = make("mem-2-20260102T000000Z.pprof", 23)
    expect(remove).to eq([young])
  end

  it "removes profiles of CPU time, too" do
    make("cpu-1-20260101T000000Z.pprof", 25, MemprofilerPprof::CPU.profile { Object.new }.pprof_data)
    expect(remove("cpu-%{pid}-%{isotime}.pprof")).to be_empty
  end

  it "removes with a profile what was recorded beside it" do
    recorded = RecordedRetainers.pprof(comments: { kind: "retainers", greatest_weight: 1 })
    make("mem-1-20260101T000000Z.pprof", 25)
    make("mem-1-20260101T000000Z.retainers.pprof", 25, recorded)
    kept = [make("mem-2-20260102T000000Z.pprof", 23), make("mem-2-20260102T000000Z.retainers.pprof", 23, recorded)]
    expect(remove).to match_array(kept)
  end

  it "removes the directory of a process with the last file" do
    %w[1 2 3].each { |pid| Dir.mkdir(pid) }
    [1, 2].each { |pid| make("#{pid}/20260101T000000Z.pprof", 25) }
    make("2/notes.txt", 25)
    make("3/20260102T000000Z.pprof", 23)
    expect(remove("%{pid}/%{isotime}.pprof")).to eq(%w[2 3])
  end

  it "leaves a directory that all processes share" do
    Dir.mkdir("all")
    make("all/1-20260101T000000Z.pprof", 25)
    expect(remove("all/%{pid}-%{isotime}.pprof")).to eq(["all"])
    expect(Dir.children("all")).to eq([])
  end

  it "leaves what is only called like that" do
    make("mem-1-20260101T000000Z.pprof", 25)
    other = make("mem-1-20260101T000000Z.retainers.pprof", 25, "text")
    expect(remove).to eq([other])
  end

  it "removes nothing if files are kept forever" do
    old = make("mem-1-20260101T000000Z.pprof", 10_000)
    expect(remove(days: 0)).to eq([old])
  end

  it "goes by a file's modification time, not by whether its process exists" do
    names = [Process.pid, 1, 4_000_000].map { |pid| make("mem-#{pid}-20200101T000000Z.pprof", 1) }
    expect(remove(days: 0.001)).to match_array(names)
  end

  it "removes the oldest if there are too many" do
    stub_const("MemprofilerPprof::AbandonedFiles::MOST", 2)
    names = [4, 5, 6, 7].map { |hours| make("mem-#{hours}-20260101T000000Z.pprof", hours) }
    expect(remove(days: 100)).to eq(names.first(2))
  end

  it "does not count files of living processes" do
    stub_const("MemprofilerPprof::AbandonedFiles::MOST", 1)
    names = [1, 2, 9].map { |hours| make("mem-#{hours}-20260101T000000Z.pprof", hours) }
    expect(remove(days: 100)).to eq(names)
  end

  it "reads and removes a few at a time" do
    names = Array.new(25) { |pid| make("mem-#{pid}-20260101T000000Z.pprof", 100) }
    expect([remove.size, remove]).to eq([names.size - 20, []])
  end

  [
    "mem-1-20260101T000000Z.pprof.bak", "my-mem-1-20260101T000000Z.pprof", "mem-1-2026.pprof",
    "mem-x-20260101T000000Z.pprof", "mem-1-20260101T000000Z-1.pprof", "mem-1-20260101T000000Z.pb.gz",
    "notes.txt", "mem-1-20260101T000000Z.pprof\n",
    "memX1-20260101T000000Z.pprof", "mem-1-20260101T000000Zxpprof"
  ].each do |name|
    it "leaves #{name.inspect}, which the pattern cannot produce" do
      make(name, 1000)
      expect(remove).to eq([name])
    end
  end

  it "leaves files that are not profiles of this gem" do
    names = ["", "text", profile[0..50], Pprof::Crafted.samples(3)].each_with_index.map do |bytes, index|
      make("mem-#{index}-20260101T000000Z.pprof", 1000, bytes)
    end
    expect(remove).to eq(names)
  end

  it "leaves links and their targets" do
    Dir.mkdir("other")
    make("other/mem-1-20260101T000000Z.pprof", 1000)
    File.symlink("other/mem-1-20260101T000000Z.pprof", "mem-2-20260101T000000Z.pprof")
    File.utime(now, now, "other")
    expect([remove, Dir.children("other").size]).to eq([%w[mem-2-20260101T000000Z.pprof other], 1])
  end

  it "leaves directories" do
    Dir.mkdir("mem-1-20260101T000000Z.pprof")
    File.utime(now - 1e7, now - 1e7, "mem-1-20260101T000000Z.pprof")
    expect(remove.size).to eq(1)
  end

  it "removes nothing if names contain neither process nor time" do
    names = %w[0.pprof heap.pprof].each { |name| make(name, 1000) }
    expect([remove("heap.pprof"), remove("%{index}.pprof")]).to eq([names, names])
  end

  it "removes temporary files that a killed process left behind" do
    make(".memprofiler-0123456789abcdef.tmp", 4, "")
    names = [make(".memprofiler-fedcba9876543210.tmp", 1, ""), make(".memprofiler-1.tmp", 100, "")]
    expect(remove).to match_array(names)
  end

  it "continues if another process removes the same files" do
    make("mem-1-20260101T000000Z.pprof", 1000)
    allow(File).to receive(:unlink).and_raise(Errno::ENOENT)
    expect { remove }.not_to raise_error
  end

  it "does nothing if there is no directory yet" do
    expect(remove("none/%{pid}/%{isotime}.pprof")).to eq([])
  end
end
