# frozen_string_literal: true

require "tmpdir"
require "ruby_memprofiler_pprof/flamegraph"

# Differences in files, which `go tool pprof -diff_base` writes in the same way.
RSpec.describe MemprofilerPprof::Profile, "that is a difference" do
  def pprof(lines)
    Pprof::Maker.lines(lines.transform_values { |count| [count, count] }).to_s
  end

  let(:bytes) { [pprof("a.rb:1" => 10_010, "b.rb:2" => 20, "c.rb:3" => 10), pprof("a.rb:1" => 10_000, "b.rb:2" => 50)] }
  let(:difference) { bytes.map { |profile| described_class.load(profile) }.reduce(:diff) }
  let(:read) { described_class.load(difference.to_pprof) }

  def figures(profile)
    [profile.total, *profile.top(limit: 9).flat_map { |site| [site.name, site.flat, site.cumulative] }]
  end

  it "is one in a file, too, with the same intervals" do
    expect(read).to eq(difference).and be_difference
    expect(figures(read)).to eq(figures(difference))
  end

  it "has no width in a flame graph of its file" do
    expect { MemprofilerPprof::Flamegraph.new([read]) }.to raise_error(ArgumentError, /a difference/)
  end

  it "shows no label of what was subtracted" do
    expect(read.samples.map(&:labels)).to all(eq({}))
  end

  it "has the values that go tool pprof shows of its file", :go do
    result = Pprof::GoPprof.run(difference.to_pprof, "-top", "-nodefraction=0", "-sample_index=retained_objects")
    expect(result.stdout.scan(/^ *(-?\d+) .* (\S+)$/).to_h { |value, name| [name, value.to_i] })
      .to eq(difference.top(type: :retained_objects).to_h { |site| [site.name, site.flat.value] })
  end

  it "can come from go tool pprof", :go do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "difference.pprof")
      Pprof::GoPprof.run(bytes[0], "-proto", "-output=#{path}", base: bytes[1])
      expect(described_class.load(path)).to be_difference
      expect(figures(described_class.load(path))).to eq(figures(difference))
    end
  end
end
