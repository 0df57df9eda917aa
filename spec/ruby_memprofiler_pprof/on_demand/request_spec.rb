# frozen_string_literal: true

RSpec.describe MemprofilerPprof::OnDemand::Request do
  it "is understood as it is written" do
    [described_class.new(name: "heap"), described_class.new(name: "allocs", seconds: 3, gc: true, names: :go),
     described_class.new(name: "leaks", by: :class, limit: 5)].each do |request|
      expect(described_class.parse(request.target)).to eq(request)
    end
  end

  it "is none if there is no such thing" do
    expect(["/", "/nope", "/heap/x", ""].map { |target| described_class.parse(target) }).to eq([nil] * 4)
  end

  { "/heap?seconds=61" => 'seconds must be a whole number from 1 to 60, got "61".',
    "/heap?gc" => 'gc must be 0 or 1, got "".', "/heap?names=perl" => 'names must be ruby or go, got "perl".',
    "/leaks?by=x" => 'by must be one of method, line, file, gem, class, got "x".',
    "/leaks?limit=0" => 'limit must be a whole number from 1 to 1000, got "0".',
    "/heap?pid=all" => 'The parameters are seconds, gc, names, by, limit, got "pid".',
    "/heap?a&&b" => /got "a"/ }.each do |target, message|
    it "refuses #{target}" do
      expect { described_class.parse(target) }.to raise_error(ArgumentError, message)
    end
  end
end
