# frozen_string_literal: true

%w[cli cli/top report cli/source cli/top/overview].each { |name| require "ruby_memprofiler_pprof/#{name}" }

RSpec.describe MemprofilerPprof::CLI::Top::View do
  let(:style) { MemprofilerPprof::Report::Style.new(100, false) }
  let(:view) { view_by(:class) }

  def view_by(grouping)
    described_class.new("a.sock", by: grouping, sort: :objects, app: false) { |profile| profile }.tap do |view|
      maker = Pprof::Maker.new(time: 1, duration: 1, comments: { pid: 7 })
      30.times { |index| maker.sample(["make /a.rb:#{index + 1}"], [1, 40, 100 - index, 4000], "K#{index}") }
      view.profile = maker.profile
    end
  end

  def press(*keys)
    keys.each { |key| view.press(key) }
  end

  def lines(height = 24)
    view.lines(style, height)
  end

  # The row with the mark.
  def marked
    lines.grep(/^> /).map { |line| line[/\S+$/] }
  end

  it "asks for the holders of a row that is chosen" do
    expect([marked, lines.last]).to match([[], /  w holders  /])
    press("w")
    expect([marked, lines.last]).to eq([["K0"], "Who holds it?  Up/Down choose a row  Enter ask  Esc back"])
    press(:down, :down, :up, :up, :up, :down)
    expect([marked, view.question]).to eq([["K1"], nil])
    press(:enter)
    expect([view.question, view.question]).to eq([{ class_name: "K1" }, nil])
    expect([lines[2], lines.last, lines.size]).to eq(["Asking who holds K1 ...", "Esc back", 24])
  end

  it "shows no control characters, which a profile or an answer may contain", :aggregate_failures do
    maker = Pprof::Maker.new(time: 1, duration: 1, comments: { "tag.attached_at": "\e[2J" })
    view.profile = maker.sample(["make /a.rb:1"], [1, 40, 100, 4000], "\e[2J").profile
    view.problem = "\e[2J"
    expect(lines).to include(/  \?\[2J$/, "Attached at ?[2J: what was allocated before is unknown.")
    press("w", :enter)
    expect(lines[2]).to eq("Asking who holds ?[2J ...")
    view.answer(view.question, MemprofilerPprof::CLI::Source::Unavailable.new("\e[2J"))
    expect(lines[2]).to eq("?[2J")
  end

  it "follows the chosen row to where it is visible" do
    lines
    press("w", :page_down, :page_down)
    expect([marked, lines.grep(/K20$/).size]).to eq([["K20"], 1])
    press(*[:page_down] * 2)
    expect(marked).to eq(["K29"])
    press(*[:page_up] * 4)
    expect(marked).to eq(["K0"])
  end

  it "has nothing to choose before there is a profile" do
    empty = described_class.new("a.sock", by: :class, sort: :objects, app: false) { |profile| profile }
    empty.press("w")
    expect(empty.lines(style, 24).last).to eq("Waiting for the first profile ...")
  end

  { line: { site: "/a.rb:1" }, file: { site: "/a.rb" } }.each do |by, question|
    it "asks for a #{by}" do
      view = view_by(by)
      view.press("w")
      view.press("w")
      expect(view.question).to eq(question)
    end
  end

  it "says what else can be asked for" do
    view = view_by(:method)
    view.press("w")
    view.press(:enter)
    expect([view.question, view.lines(style, 24)[2]])
      .to eq([nil, "rows by method cannot be asked for: Tab groups by line, file or class"])
  end

  describe "with the memory" do
    def show(**comments)
      view.profile = Pprof::Maker.new(time: 1, duration: 1, comments: { pid: 7, **comments })
                                 .sample(["make /a.rb:1"], [1, 40, 100, 4000], "K0").profile
    end

    before do
      show(**RecordedMemory.comments)
      press("m")
    end

    it "shows it in place of the table, and scrolls" do
      expect(lines[2..3]).to eq(["Process 4711, 2026-11-23 07:00:00 UTC",
                                 "204 MiB resident, 213 MiB at most so far. Unexplained: 0.1%."])
      expect([lines.last, lines.size, lines(10).size]).to eq(["m, Esc back  p pause  Up/Down scroll", 24, 10])
      press(:down)
      expect(lines[2]).to start_with("204 MiB resident")
      press(:page_down, :page_down, :page_down)
      expect(lines[-2]).to end_with("That frees 32.0 MiB at most.")
    end

    it "shows that of the newest profile" do
      show(**RecordedMemory.comments({ code: 100 }))
      expect(lines[3]).to start_with("259 MiB resident")
      show
      expect(lines[2]).to eq("The profiles of this process do not say where its memory is.")
    end

    it "goes back, and pauses, but does nothing else" do
      press("w", "/", "p")
      expect([lines.first, view.typing?, lines[2]]).to match([/PAUSED/, false, /\AProcess 4711/])
      press("m")
      expect(lines.last).to match(/  m memory  /)
      press("m", :escape)
      expect(lines.join).to include("K0")
    end
  end

  describe "with an answer" do
    before do
      press("w", :enter)
      @question = view.question
    end

    it "shows it in place of the table, and scrolls" do
      view.answer(@question, [RecordedRetainers.retainers])
      expect(lines[2..4]).to match([/\AProcess 4711, /, /\A1\.02 M objects/, /\APaused the program/])
      expect(lines.last).to eq("Esc back  Up/Down scroll")
      press(:down, :down)
      expect([lines(10)[2], lines(10).size]).to match([/\APaused the program/, 10])
      press(:page_down, :page_down, :page_down)
      expect(lines(10)[-2]).to eq("  25% unreachable")
      press(:escape)
      expect(lines).to include(/ K0$/)
    end

    it "shows why there is none" do
      view.answer(@question, MemprofilerPprof::CLI::Source::Unavailable.new("memory is short"))
      expect(lines[2]).to eq("memory is short")
    end

    it "shows none that nobody waits for" do
      press(:escape)
      view.answer(@question, [RecordedRetainers.retainers])
      expect(lines).to include(/ K0$/)
      press("w", :enter)
      view.answer(@question, [RecordedRetainers.retainers])
      expect(lines[2]).to eq("Asking who holds K0 ...")
    end

    it "is up to date in its title" do
      view.profile = Pprof::Maker.new(time: 1, duration: 1, comments: { pid: 8 }).profile
      expect(lines.first).to start_with("a.sock  pid 8  ")
    end
  end
end
