# frozen_string_literal: true

require "json"
require "socket"
require "tmpdir"

RSpec.describe "memprofiler leaks --why", :threads do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  before { series(7, RecordedRetainers::SITE => :grows, "/srv/shop/a.rb:2" => :grows, "/srv/shop/a.rb:3" => :rests) }

  let(:profiler) { MemprofilerPprof::DefaultProfiler.new({}) }

  after { profiler.stop }

  # Writes profiles of a process.
  def series(pid, lines)
    20.times do |index|
      counts = lines.transform_values { |kind| [0, kind == :grows ? 400 + (100 * index) : 400] }
      comments = { pid: pid, started_at: 1.5, major_gc_count: index }
      profile = Pprof::Maker.lines(counts, time: 1_000_000_000 + (index * 60), comments: comments)
      File.binwrite(format("mem-%d-%02d.pprof", pid, index), profile.to_s)
    end
  end

  def leaks(*arguments, **keywords)
    run_command(*SubprocessHelpers::MEMPROFILER, "leaks", *arguments, **keywords)
  end

  # The rows of the table.
  def rows(outcome)
    outcome.stdout.split("\n\n")[1].lines.drop(1).map(&:rstrip)
  end

  def record(index, pid: 7)
    File.binwrite(format("mem-%d-%02d.retainers.pprof", pid, index), RecordedRetainers.pprof)
  end

  it "shows below each line that grows what was recorded of it last" do
    record(3)
    record(12)
    outcome = leaks("--why", ".")
    expect(outcome.stderr).to eq("")
    expect(rows(outcome)).to match([/\Agrowing .* a\.rb:2/, /\Agrowing .*product_card_cache\.rb:11\z/,
                                    "  100% held by ProductCardCache.@cards → Hash"])
    expect(outcome.stdout).to include("Holders are those recorded in ./mem-7-12.retainers.pprof, 2026-11-22 21:52:13 " \
                                      "UTC. None is known of /srv/shop/a.rb:2.\n")
  end

  it "shows nothing that was recorded at the exit, when much may be gone" do
    record(12)
    comments = { pid: 7, started_at: 1.5, major_gc_count: 20, at_exit: "may be gone" }
    File.binwrite("mem-7-20.pprof", Pprof::Maker.lines({}, time: 1_000_001_200, comments: comments).to_s)
    record(20)
    expect(leaks("--why", ".").stdout).to include("Holders are those recorded in ./mem-7-12.retainers.pprof, ")
  end

  it "leaves no column out for the sake of a holder" do
    record(19)
    with, without = [["--why", "."], ["."]].map { |arguments| rows(leaks(*arguments, env: { "COLUMNS" => "114" })) }
    expect(with.grep_v(/held by/)).to eq(without)
    expect(without.last).to match(/KiB\.\..*KiB\.\./)
  end

  it "says so if nothing was recorded" do
    expect(leaks("--why", ".").stdout)
      .to include("\nNo holders: none were recorded beside these profiles. The setting retainers_every does that; ")
  end

  it "asks the process if it is named" do
    series(Process.pid, RecordedRetainers::SITE => :grows)
    Dir.glob("mem-7-*") { |file| File.unlink(file) }
    profiler.start(socket: "a.sock")
    asked = RecordedRetainers.answer_of(profiler.collector)
    outcome = leaks("--why", "a.sock", ".")
    expect(rows(outcome).last)
      .to eq("  100% held by ProductCardCache.@cards → Hash (6,724), which retains 38.9 MiB")
    expect(outcome.stdout).to include("\nHolders are those of now, in process #{Process.pid}.\n")
    expect(asked).to eq([[nil, nil, 100, false, 60]])
  end

  it "asks the processes in a directory of sockets" do
    series(Process.pid, RecordedRetainers::SITE => :grows)
    Dir.glob("mem-7-*") { |file| File.unlink(file) }
    Dir.mkdir("sockets")
    profiler.start(socket: "sockets/a.sock")
    RecordedRetainers.answer_of(profiler.collector)
    outcome = leaks("--why", ".", "sockets")
    expect(outcome.stderr).to eq("")
    expect(outcome.stdout).to include("\nHolders are those of now, in process #{Process.pid}.\n")
  end

  it "does not mix processes up" do
    profiler.start(socket: "a.sock")
    RecordedRetainers.answer_of(profiler.collector)
    expect(leaks("--why", "a.sock", ".").stdout)
      .to include("\nNo holders: a.sock is of process #{Process.pid}, not of 7.\n")
  end

  it "does not ask a process for an ended one that had its id" do
    series(Process.pid, RecordedRetainers::SITE => :grows)
    Dir.glob("mem-7-*") { |file| File.unlink(file) }
    later = Pprof::Maker.lines({ "/a.rb:1" => [0, 9] }, time: 2_000_000_000,
                                                        comments: { pid: Process.pid, started_at: 1_999_999_999 })
    File.binwrite("mem-later.pprof", later.to_s)
    profiler.start(socket: "a.sock")
    asked = RecordedRetainers.answer_of(profiler.collector)
    expect(leaks("--why", "a.sock", ".").stdout).to include("\nNo holders: none were recorded beside these profiles.")
    expect(asked).to eq([])
  end

  it "shows what grows even if the process does not answer" do
    UNIXServer.new("a.sock").close
    outcome = leaks("--why", "--exit-code", "a.sock", ".")
    expect(rows(outcome)).to match([/\Agrowing /] * 2)
    expect(outcome.stdout).to include("\nNo holders: a.sock: nobody listens there: the process has ended.\n")
    expect(outcome.status.exitstatus).to eq(1)
  end

  it "asks nobody if nothing grows" do
    Dir.glob("mem-7-*") { |file| File.unlink(file) }
    series(7, "/srv/shop/a.rb:3" => :rests)
    profiler.start(socket: "a.sock")
    asked = RecordedRetainers.answer_of(profiler.collector)
    expect(leaks("--why", "a.sock", ".")).to be_success
    expect(asked).to eq([])
  end

  it "says it as JSON and Markdown, too" do
    record(19)
    section = JSON.parse(leaks("--why", "--json", ".").stdout)["sections"].first
    holders = section["findings"].to_h { |finding| finding.values_at("name", "holder") }
    expect(holders).to include(RecordedRetainers::SITE => include("share" => be > 0.9), "/srv/shop/a.rb:2" => nil)
    expect(section["notes"].map { |note| note["code"] }).to include("HOLDERS")
    expect(JSON.parse(leaks("--json", ".").stdout)["sections"].first["findings"].first).not_to include("holder")
    expect(leaks("--why", "--format", "markdown", ".").stdout)
      .to match(/^- \*\*GROWING\*\* `.*product_card_cache.rb:11.*\n  - \*\*HOLDER\*\* `100% held by .*@cards → Hash`$/)
  end

  it "needs lines" do
    expect(leaks("--why", "--by", "class", "."))
      .to have_attributes(status: have_attributes(exitstatus: 2), stderr: "memprofiler: --why needs --by line\n")
  end
end
