# frozen_string_literal: true

require "tmpdir"

RSpec.describe MemprofilerPprof::Directories do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  it "gives a directory that root makes to whoever has the one that it is in" do
    skip "only root gives something away" unless Process.euid.zero?
    Dir.mkdir("app")
    File.chown(65_534, 65_534, "app")
    described_class.make("app/tmp/profiles")
    owners = %w[app/tmp app/tmp/profiles].map { |path| File.stat(path).uid }
    expect(owners).to eq([65_534, 65_534])
  end

  it "makes the directory where root may not give it away" do
    allow(Process).to receive(:euid).and_return(0)
    allow(File).to receive(:stat).and_return(instance_double(File::Stat, uid: 65_534, gid: 65_534))
    allow(File).to receive(:lchown).and_raise(Errno::EPERM)
    described_class.make("a")
    expect(File.directory?("a")).to be(true)
  end

  it "knows the innermost directory that exists" do
    Dir.mkdir("a")
    expect([described_class.existing("a/b/c"), described_class.existing("a"), described_class.existing("/a")])
      .to eq(["a", "a", "/"])
  end
end
