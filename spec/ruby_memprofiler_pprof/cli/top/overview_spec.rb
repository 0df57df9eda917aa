# frozen_string_literal: true

%w[cli cli/top report cli/source cli/top/overview].each { |name| require "ruby_memprofiler_pprof/#{name}" }

RSpec.describe MemprofilerPprof::CLI::Top::Overview do
  let(:style) { MemprofilerPprof::Report::Style.new(100, false) }
  let(:overview) do
    described_class.new("s  every 1 s", by: :class, sort: :objects, app: false) { |profile| profile }
  end

  # A process that has so many objects, and allocates so many each second.
  def process(pid, objects, allocations = 0)
    Pprof::Maker.new(time: 1, duration: 1, comments: { pid: pid, rss_bytes: 1 << 20 })
                .sample(["make /a.rb:1"], [allocations, 10, objects, 10], "Kind#{pid}").profile
  end

  def show(**processes)
    overview.profile = processes.transform_keys(&:to_s)
  end

  # Shows what the processes that are asked answer, after the block has run.
  def fetch(**processes)
    overview.profile = overview.fetch do
      yield if block_given?
      processes.transform_keys(&:to_s)
    end
  end

  def press(*keys)
    keys.each { |key| overview.press(key) }
  end

  # The process ids from the top, the chosen one marked.
  def pids(height = 24)
    overview.lines(style, height).filter_map { |line| line[/^ *((?:> +)?\d+) /, 1] }
  end

  it "has the processes in the order of a figure, with what has most of it" do
    show(a: process(1, 10, 90), b: process(2, 20, 80))
    expect(overview.lines(style, 24).first(6))
      .to match([/\As  every 1 s  2 processes  \d\d:\d\d:\d\d\z/, "", / \*OBJECTS .*MOST OF \*/,
                 /\A> 2 .*~20 .* 1\.00 MiB  Kind2/, /\A  1 .*~10 .* Kind1/, /\Aall +170 .* 30 .* 2\.00 MiB\z/])
    press(:left, :left)
    expect([pids, overview.lines(style, 24)[2]]).to match([["1", "> 2"], / \*ALLOC/])
  end

  it "asks the chosen process who holds what" do
    show(a: process(1, 30), b: process(2, 20))
    press("w")
    expect(overview.question).to be_nil
    press(:down, :enter, "w", :enter)
    question = overview.question
    expect([overview.chosen, question]).to eq(["b", { class_name: "Kind2" }])
    overview.answer(question, [RecordedRetainers.retainers])
    expect(overview.lines(style, 24)[2]).to start_with("Process 4711, ")
    press(:backspace)
    overview.answer(question, [RecordedRetainers.retainers])
    expect(pids).to eq(["1", "> 2"])
  end

  it "shows the memory of all side by side" do
    show(a: process(1, 30), b: process(2, 20))
    press("m")
    expect(overview.lines(style, 24)[2]).to eq("The profiles of this process do not say where its memory is.")
    memories = [1, 2].map do |pid|
      Pprof::Maker.new(time: 1, duration: 1, comments: { pid: pid, **RecordedMemory.comments(pid: pid) })
                  .sample(["make /a.rb:1"], [1, 10, 1, 10], "K").profile
    end
    show(a: memories.first, b: memories.last, c: MemprofilerPprof::CLI::Source::Unavailable.new("gone"))
    expect(overview.lines(style, 24)[2..7]).to match(["2 processes", /own memory is 378 MiB/, "", /\APID +RSS/,
                                                      /\A *1 /, /\A *2 /])
    press(:escape)
    expect(pids).to eq(["> 1", "2"])
  end

  it "keeps a process selected wherever it moves" do
    show(a: process(1, 30), b: process(2, 20), c: process(3, 10))
    press(:down, :down, :down)
    expect(pids).to eq(["1", "2", "> 3"])
    show(a: process(1, 30), b: process(2, 20), c: process(3, 40))
    expect(pids).to eq(["> 3", "1", "2"])
    show(a: process(1, 30), b: process(2, 20))
    expect(pids).to eq(["> 1", "2"])
  end

  it "shows the selected one alone, and all again" do
    show(a: process(1, 30), b: process(2, 20))
    press(:down, :enter)
    expect([overview.chosen, overview.lines(style, 24)])
      .to match(["b", start_with(/\Ab  every 1 s  pid 2  /).and(end_with(/\ABackspace all processes  q quit/))])
    # All of them were asked for before it was chosen.
    show(a: process(1, 30), b: process(2, 50))
    expect(overview.lines(style, 24)).to include(/Retains +~50 objects/)
    fetch(b: process(2, 60))
    press(:backspace)
    expect([overview.chosen, pids]).to eq([nil, ["> 2", "1"]])
  end

  it "still shows all if the answer of the one that was chosen comes afterwards" do
    show(a: process(1, 30), b: process(2, 20))
    press(:down, :enter)
    fetch(b: process(2, 60)) { press(:backspace) }
    expect(pids).to eq(["> 2", "1"])
  end

  it "lets Backspace delete what is typed into a filter" do
    show(a: process(1, 30))
    press(:enter, "/", "x", :backspace)
    expect([overview.typing?, overview.lines(style, 24).last]).to match([true, /\AFilter: _/])
  end

  it "says why a process has not answered, and why there is none" do
    gone = MemprofilerPprof::CLI::Source::Unavailable.new("Connection refused")
    overview.problem = "nobody\nthere"
    expect(overview.lines(style, 24)[2]).to eq("nobody?there")
    show(a: process(1, 30), b: gone)
    expect(overview.lines(style, 24)).to include(end_with("b: Connection refused"))
    press(:down, :enter)
    expect(overview.lines(style, 24)).to include("Connection refused")
  end

  it "pauses" do
    expect { press("p") }.to change(overview, :paused?).from(false).to(true)
  end

  it "shows the part with the selected process where there is too little room" do
    show(**(1..9).to_h { |pid| [:"p#{pid}", process(pid, 100 - pid)] })
    6.times { press(:down) }
    expect([pids(9), overview.lines(style, 9).size]).to eq([["5", "6", "> 7"], 9])
  end
end
