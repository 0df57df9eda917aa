# frozen_string_literal: true

require "tmpdir"

RSpec.describe "docs/getting-started.md" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def examples(heading)
    Manual.ruby("docs/getting-started.md", heading)
  end

  def run(code)
    outcome = run_ruby("require 'ruby_memprofiler_pprof'\n#{code}", gems: true)
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
  end

  def frames(path)
    MemprofilerPprof::Profile.load(path).samples.flat_map { |sample| sample.stack.map(&:name) }.uniq
  end

  it "starts from the program's own code, and writes a file at exit" do
    configure, = examples("Profile from your own code")
    run("#{configure}\ndef work = Array.new(50_000) { Object.new }\nKEPT = work")
    expect(frames(Dir["tmp/profiles/*.pprof"].first)).to include("Object#work")
  end

  it "profiles a piece of code" do
    _, piece, = examples("Profile from your own code")
    run("def work = $kept = Object.new\n#{piece}")
    expect(frames("work.pb.gz")).to include("Object#work")
  end

  it "takes a profile from a collector" do
    *, collector = examples("Profile from your own code")
    run(collector.sub("# ... the program runs ...", "KEPT = Array.new(50_000) { Object.new }"))
    expect(frames("heap.pprof")).to include("<main>")
  end

  it "flushes to files" do
    files, = examples("Write profiles periodically")
    run("#{files}\nKEPT = Array.new(50_000) { Object.new }")
    expect(frames(Dir["tmp/profiles/*.pprof"].first)).to include("<main>")
  end

  it "flushes to a block" do
    files, block = examples("Write profiles periodically")
    bucket = "bucket = Class.new { def put(name, data) = File.binwrite(name, data) }.new"
    run("#{bucket}\n#{files.lines.first}\n#{block}\nKEPT = Array.new(50_000) { Object.new }")
    expect(frames(Dir["heap-*.pprof"].first)).to include("<main>")
  end
end
