# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe MemprofilerPprof::Testing::Report do
  def sample(class_name, objects, bytes, *frames)
    frames = frames.map { |name, file, line| MemprofilerPprof::Profile::Frame.new(name, file, line) }
    MemprofilerPprof::Testing::Sample.new(class_name, frames, { count: objects, size: bytes })
  end

  def sites(*samples, by: :count, calls: nil)
    described_class.sites(samples, { objects: :count, bytes: :size }, by: by, calls: calls)
  end

  let(:own) { ["Own#call", "#{Dir.pwd}/lib/own.rb", 3] }
  let(:library) { ["Library#call", "/gems/library.rb", 7] }

  it "groups by class and stack, most first" do
    text = sites(sample("A", 1, 40, own), sample("B", 2, 80, own), sample("A", 1234, 40, own))
    expect(text.lines.grep(/objects/)).to eq(["  1,235 objects, 80 bytes: A\n", "  2 objects, 80 bytes: B\n"])
  end

  it "orders by the limited quantity" do
    text = sites(sample("A", 2, 40, own), sample("B", 1, 20_480, own), by: :size)
    expect(text.lines.grep(/object/)).to eq(["  1 object, 20.0 KiB: B\n", "  2 objects, 40 bytes: A\n"])
  end

  it "shows how many there are per call" do
    expect(sites(sample("A", 3, 40, own), calls: 2)).to start_with("  3 objects (1.50 per call), 40 bytes: A\n")
  end

  it "shows the project's own frames, followed by the place of the allocation" do
    expect(sites(sample("A", 1, 40, library, own, library, own)).lines.drop(1).map(&:strip))
      .to eq(["lib/own.rb:3 in Own#call", "lib/own.rb:3 in Own#call",
              "allocated in Library#call at /gems/library.rb:7"])
  end

  it "shows the innermost frames if none belongs to the project" do
    expect(sites(sample("A", 1, 40, *[library] * 5)).lines.drop(1).map(&:strip))
      .to eq(["/gems/library.rb:7 in Library#call"] * 4)
  end

  it "treats gems below the project's directory as foreign code" do
    vendored = ["Gem#call", "#{Dir.pwd}/vendor/bundle/gem.rb", 1]
    expect(sites(sample("A", 1, 40, vendored, own)).lines.drop(1).map(&:strip))
      .to eq(["lib/own.rb:3 in Own#call", "allocated in Gem#call at vendor/bundle/gem.rb:1"])
  end

  it "shows names in UTF-8 where the locale does not know the directory" do
    allow(Dir).to receive(:pwd).and_return("/srv/Ä".b)
    expect(sites(sample("A", 1, 40, ["é", "/gems/é.rb", 1], ["ö", "/srv/Ä/ö.rb", 2])).lines.drop(1).map(&:strip))
      .to eq(["ö.rb:2 in ö", "allocated in é at /gems/é.rb:1"])
  end

  it "names a saved profile where the locale does not know the directory" do
    allow(Dir).to receive(:pwd).and_return("/srv/Ä".b)
    allow(File).to receive(:file?).and_return(true)
    allow(MemprofilerPprof::Testing).to receive(:save).and_return("/srv/Ä/ö.pprof")
    expect(described_class.saved(instance_double(MemprofilerPprof::ProfileData), :size)).to start_with("profile: ö.p")
  end

  it "sums up everything beyond five places" do
    samples = Array.new(8) { |i| sample("C#{i}", 10 - i, 10, own) }
    expect(sites(*samples).lines.last).to eq("  and 12 objects, 30 bytes from 3 more places")
  end

  it "formats numbers for people" do
    expect([1, 9999, 10_240, 1 << 30].map { |bytes| described_class.bytes(bytes) })
      .to eq(["1 byte", "9,999 bytes", "10.0 KiB", "1.00 GiB"])
  end
end
