# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack"
%w[answers memory_page memory_query].each { |name| require "ruby_memprofiler_pprof/rack/#{name}" }

RSpec.describe "The memory of several processes, as a page" do
  # Bytes, as a socket gives them.
  let(:bodies) { [7, 8].to_h { |pid| [pid, RecordedMemory.json(pid: pid, allocator: "glibc ü").b] } }

  def body(query)
    rack = MemprofilerPprof::Rack
    answers = rack.const_get(:Answers).new(bodies, { 9 => IOError.new("gone") })
    rack.const_get(:MemoryPage).new(answers, rack.const_get(:MemoryQuery).new(query, 60), "/pprof").response.last.join
  end

  it "shows them side by side" do
    expect(body("pid=all&format=text")).to match(/\A2 processes\n.*^ *7 +204 MiB.*^ *8 +204 MiB/m)
    expect(body("pid=all")).to include("<h1>2 processes (7, 8); without 9: gone: where the memory is</h1>")
  end

  it "is an Array of all as JSON" do
    expect(JSON.parse(body("pid=all&format=json")).map { |each| each.values_at("pid", "allocator") })
      .to eq([[7, "glibc ü"], [8, "glibc ü"]])
  end

  it "is an Array as JSON even if only one has answered" do
    bodies.delete(8)
    expect(JSON.parse(body("pid=all&format=json"))).to match([include("pid" => 7)])
    expect(JSON.parse(body("pid=7&format=json"))).to include("pid" => 7)
    expect(body("pid=all&format=text")).to start_with("Process 7, ")
  end
end
