# frozen_string_literal: true

RSpec.describe MemprofilerPprof::RetainersFile do
  { "/a/mem-1.pprof" => "/a/mem-1.retainers.pprof", "mem.pb.gz" => "mem.retainers.pprof",
    "a.d/mem" => "a.d/mem.retainers.pprof",
    "\xFF.pprof" => "\xFF.retainers.pprof", "a.\u00e9" => "a.retainers.pprof" }.each do |profile, name|
    it "is #{name.inspect} beside #{profile.inspect}" do
      expect(described_class.beside(profile)).to eq(name)
    end
  end

  it "is known by its name, or its number" do
    names = ["a.retainers.pprof", "b/a.retainers_x3.pprof", "\xFF.retainers.pprof", "a.pprof", "retainers.pprof",
             "a.retainers.pprof.bak", "a.retainers-3.pprof", "\xFF"]
    expect(names.map { |name| described_class.name?(name) }).to eq(([true] * 3) + ([false] * 5))
  end

  it "is known by its comment, whatever it is called" do
    profiles = [RecordedRetainers.pprof, Pprof::Maker.lines({ "/a.rb:1" => [0, 1] }).to_s]
    expect(profiles.map { |bytes| described_class.holds?(MemprofilerPprof::Profile.load(bytes)) }).to eq([true, false])
  end
end
