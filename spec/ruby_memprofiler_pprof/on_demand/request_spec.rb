# frozen_string_literal: true

RSpec.describe MemprofilerPprof::OnDemand::Request do
  it "is understood as it is written" do
    [described_class.new(name: "heap"), described_class.new(name: "allocs", seconds: 3, gc: true, names: :go),
     described_class.new(name: "leaks", by: :class, limit: 5),
     described_class.new(name: "retainers", site: "/srv/a b+ü.rb:7", class_name: "Foo::B&r=%", timeout: 9,
                         format: :json, in_process: true),
     described_class.new(name: "memory", quick: true, format: :json)].each do |request|
      expect(described_class.parse(request.target)).to eq(request)
    end
  end

  it "understands what people type" do
    expect(described_class.parse("/retainers?site=app/a.rb:7&class=Foo::Bar"))
      .to have_attributes(site: "app/a.rb:7", class_name: "Foo::Bar", format: nil)
    expect(described_class.parse("/retainers?site=a+b%2fc%FF").site).to eq("a b/c\uFFFD")
  end

  it "is the question to a collector" do
    expect(described_class.parse("/retainers?site=a.rb&limit=3&format=json").question).to eq(site: "a.rb", limit: 3)
  end

  it "knows how long the answer takes" do
    targets = %w[/heap /heap?seconds=7 /retainers /retainers?timeout=9]
    expect(targets.map { |target| described_class.parse(target).duration }).to eq([0, 7, 60, 9])
  end

  it "is none if there is no such thing" do
    expect(["/", "/nope", "/heap/x", ""].map { |target| described_class.parse(target) }).to eq([nil] * 4)
  end

  { "/heap?seconds=61" => 'seconds must be a whole number from 1 to 60, got "61".',
    "/heap?gc" => 'gc must be 0 or 1, got "".', "/heap?names=perl" => 'names must be ruby or go, got "perl".',
    "/leaks?by=x" => 'by must be one of method, line, file, gem, class, got "x".',
    "/leaks?limit=0" => 'limit must be a whole number from 1 to 1000, got "0".',
    "/retainers?timeout=601" => 'timeout must be a whole number from 1 to 600, got "601".',
    "/retainers?format=xml" => 'format must be one of text, json, pprof, both, got "xml".',
    "/retainers?site=" => 'site must be FILE:LINE or FILE, got "".',
    "/heap?pid=all" => "The parameters are seconds, gc, names, by, limit, site, class, timeout, in_process, quick, " \
                       'format, got "pid".',
    "/memory?format=pprof" => 'format must be text or json, got "pprof".',
    "/memory?format=xml" => 'format must be text or json, got "xml".',
    "/heap?a&&b" => /got "a"/ }.each do |target, message|
    it "refuses #{target}" do
      expect { described_class.parse(target) }.to raise_error(ArgumentError, message)
    end
  end
end
