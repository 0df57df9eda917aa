# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/flamegraph"
require "tmpdir"

# The page as such. flamegraph_page_spec looks at it in a browser.
RSpec.describe MemprofilerPprof::Flamegraph do
  def made(time: 1, **options)
    maker = Pprof::Maker.new(time: time, **options)
    yield maker
    maker.profile
  end

  def simple(time: 1, count: 1, name: "work", type: Pprof::Maker::TYPES)
    made(time: time, types: type) { |maker| maker.sample(["<main> /a.rb:1", "#{name} /a.rb:2"], [count] * type.size) }
  end

  def html(*profiles, **options)
    described_class.new(profiles, **options).to_html
  end

  def data(page)
    JSON.parse(page[%r{<script id="data" type="application/json">(.*?)</script>}m, 1])
  end

  it "escapes names that could be taken for markup" do
    hostile = "</script><script>alert(1)</script><!--\u2028"
    page = html(simple(name: hostile), title: hostile)
    expect(page.scan(/<script/).size).to eq(2)
    expect(page).not_to include("<!--")
    expect(data(page)["tree"]["strings"]).to include(hostile)
    expect(data(page)["title"]).to eq(hostile)
  end

  it "refers to no other file" do
    page = html(simple)
    expect(page.scan(/\b(?:src|href)=|url\(|@import|\bfetch\(|XMLHttpRequest/)).to eq([])
    expect(page[/Content-Security-Policy" content="(.*?)"/, 1]).to start_with("default-src 'none';")
  end

  it "orders profiles by time, the base first" do
    page = html(simple(time: 3), simple(time: 2), base: simple(time: 9), names: %w[late early], base_name: "base")
    expect(data(page)["profiles"].map { |each| each.slice("name", "time") })
      .to eq([{ "name" => "base", "time" => 9000 }, { "name" => "early", "time" => 2000 },
              { "name" => "late", "time" => 3000 }])
  end

  it "has a method once, even if profiles found different blocks of it first" do
    profiles = [7, 2].map { |line| made(start_line: line) { |maker| maker.sample(["block in a /a.rb:9"], [1] * 4) } }
    tree = data(html(profiles.last, base: profiles.first))["tree"]
    expect(tree["nodes"]["parent"]).to eq([0, 0])
    expect(tree["frames"]["line"]).to eq([0, 2])
  end

  it "combines what is too small, and loses none of it" do
    profile = made do |maker|
      maker.sample(["great /a.rb:1"], [990] * 4)
      10.times { |number| maker.sample(["small#{number} /a.rb:1"], [1] * 4) }
    end
    tree = data(html(profile, min: 0.005))["tree"]
    expect(tree["nodes"]["kind"]).to eq([0, 0, 2])
    expect(tree["values"][0][0]["value"]).to eq([990, 10])
  end

  it "reports invalid arguments" do
    expect { described_class.new([]) }.to raise_error(ArgumentError, "profiles must be at least one, got []")
    expect { described_class.new([1]) }.to raise_error(TypeError, /got 1/)
    expect { described_class.new([simple], min: 2) }.to raise_error(ArgumentError, "min must be in 0..1, got 2")
    expect { described_class.new([simple], by: :gem) }.to raise_error(ArgumentError, /by must be one of :method, /)
    expect { described_class.new([simple], type: :x) }.to raise_error(ArgumentError, /type must be one of alloc/)
    expect { described_class.new([simple], names: []) }.to raise_error(ArgumentError, /names must be one per profile/)
    expect { described_class.new([simple.diff(simple)]) }.to raise_error(ArgumentError, /a difference/)
  end

  it "names a profile of another kind" do
    other = simple(type: [%w[samples count]])
    expect { html(simple, other, names: %w[a.pprof b.pprof]) }
      .to raise_error(MemprofilerPprof::ProfileError, /\Ab\.pprof cannot be shown with a\.pprof: its sample types are/)
  end
end
