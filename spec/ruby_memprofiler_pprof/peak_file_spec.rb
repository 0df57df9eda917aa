# frozen_string_literal: true

RSpec.describe MemprofilerPprof::PeakFile do
  { "/a/mem-1.pprof" => "/a/mem-1.peak.pprof", "mem.pb.gz" => "mem.peak.pprof", "\xFF.pprof" => "\xFF.peak.pprof" }
    .each do |profile, name|
    it "is #{name.inspect} beside #{profile.inspect}" do
      expect(described_class.beside(profile)).to eq(name)
    end
  end

  it "is known by its name" do
    names = ["a.peak.pprof", "\xFF.peak.pprof", "a.pprof", "peak.pprof", "a.peak.pprof.bak"]
    expect(names.map { |name| described_class.name?(name) }).to eq([true, true, false, false, false])
  end
end
