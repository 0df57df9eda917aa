# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe "MemprofilerPprof::Report::Markdown" do
  let(:report) { MemprofilerPprof::Report }

  # @param names [Array<String>] of sites
  def section(title, names, notes: [])
    table = report.const_get(:Table).new([["CHANGE", :right, nil], ["95% INTERVAL", :right, nil], ["", :left, nil],
                                          ["LINE", :left, nil]])
    names.each { |name| table.add(["+1 B", "0 B..2 B", "low confidence", [name, "x"]], code: "GREW") }
    report.const_get(:Section).new(title: title, notes: notes, summary: "size: +9 B in all", table: table, data: {})
  end

  def markdown(*sections, notes: [], **options)
    document = report.const_get(:Document).new(command: "diff", inputs: [], sections: sections, notes: notes)
    report.const_get(:Markdown).new(document, **options).to_s
  end

  def items(text)
    text.lines.grep(/^ *- /)
  end

  it "has a heading per section, and an item with a code per note and finding" do
    note = report.const_get(:Note).new("LOST", "Lost: 7.")
    expect(markdown(section("one", ["a.rb:1"], notes: [note]), section("two", []))).to eq(<<~MARKDOWN)
      # memprofiler diff

      Figures are estimates, with 95 % intervals in parentheses.

      ## one

      size: +9 B in all

      - **LOST**: Lost: 7.
      - **GREW** `a.rb:1`: change +1 B (0 B..2 B), low confidence

      ## two

      size: +9 B in all

    MARKDOWN
  end

  it "nests what is indented" do
    expect(items(markdown(section("tree", ["total", "  a", "    b"]))).map { |item| item[/ *- \S+ \S+/] })
      .to eq(["- **GREW** `total`:", "  - **GREW** `a`:", "    - **GREW** `b`:"])
  end

  it "quotes names with as many backquotes as they need" do
    names = ["a|b<c>", "`", "a``b`"]
    expect(items(markdown(section("x", names))).map { |item| item[/GREW\*\* (.*): change/, 1] })
      .to eq(["`a|b<c>`", "`` ` ``", "``` a``b` ```"])
  end

  it "takes nothing in texts for markup, but leaves names of values readable" do
    expect(markdown(section("*a* _b_ `c` <d> |\n# e\xff", []))[/^## .*/])
      .to eq("## \\*a\\* \\_b\\_ \\`c\\` \\<d\\> \\|?\\# e\uFFFD")
    expect(markdown(section("retained_size", []))).to include("## retained_size\n")
  end

  describe "of more than --max-bytes" do
    let(:one) { section("one", Array.new(30) { |index| "one.rb:#{index}" }) }
    let(:two) { section("two", Array.new(2) { |index| "two.rb:#{index}" }) }

    it "keeps within any size, with whole findings, and says how many are missing" do
      whole = items(markdown(one, two, max_bytes: 100_000))
      (500..2500).step(7) do |max_bytes|
        text = markdown(one, two, max_bytes: max_bytes)
        shown = items(text)
        expect(text.bytesize).to be <= max_bytes
        expect(shown - whole).to eq([])
        expect(text[/bytes: (\d+) findings?/, 1].to_i).to eq(32 - shown.size)
      end
    end

    it "leaves out the last findings of each section first" do
      shown = items(markdown(one, two, max_bytes: 1000)).map { |item| item[/`(.*)`/, 1] }
      expect(shown).to eq([*Array.new(shown.size - 2) { |index| "one.rb:#{index}" }, "two.rb:0", "two.rb:1"])
      expect(shown.size).to be_between(4, 20)
    end

    it "leaves out the last sections if even their first findings do not fit" do
      sections = Array.new(50) { |index| section("section #{index}", ["a.rb:#{index}"]) }
      text = markdown(*sections, max_bytes: 2000)
      shown = text.scan(/^## section (\d+)/).flatten.map(&:to_i)
      expect(shown).to eq([*0...shown.size])
      expect(text.lines.last)
        .to eq("Left out to stay within 2000 bytes: #{left = 50 - shown.size} findings, #{left} of 50 sections.\n")
    end

    it "leaves out notes that describe the process before any finding" do
      notes = %w[EXPLAINED RESIDENT PARTS SEEN LOST].map { |code| report.const_get(:Note).new(code, "x" * 150) }
      section = section("x", ["a.rb:1"], notes: notes)
      shown = 1300.step(500, -20).map { |size| markdown(section, max_bytes: size).scan(/\*\*([A-Z_]+)\*\*/).flatten }
      expect(shown.uniq).to eq([%w[EXPLAINED RESIDENT PARTS SEEN LOST GREW], %w[EXPLAINED RESIDENT SEEN LOST GREW],
                                %w[EXPLAINED RESIDENT LOST GREW], %w[EXPLAINED LOST GREW], %w[LOST GREW]])
    end

    it "says how many of them are missing, and findings, be it one" do
      notes = %w[RESIDENT SEEN].map { |code| report.const_get(:Note).new(code, "x" * 90) }
      missing = [600, 510].product([5, 8]).map do |size, count|
        section = section("x", Array.new(count) { |index| "a.rb:#{index}" }, notes: notes)
        markdown(section, max_bytes: size)[/bytes: (.*)/, 1]
      end
      expect(missing).to eq(["1 note.", "2 notes, 1 finding.", "2 notes.", "2 notes, 3 findings."])
    end

    it "keeps within any size with notes, too, and says how many are missing" do
      notes = Array.new(20) { |index| report.const_get(:Note).new("NO_ANSWER", "#{index}.sock: Connection refused") }
      whole = markdown(one, notes: notes, max_bytes: 100_000)
      (500..2500).step(7) do |max_bytes|
        text = markdown(one, notes: notes, max_bytes: max_bytes)
        shown = text.scan(/^.* \(NO_ANSWER\)$/)
        expect(text.bytesize).to be <= max_bytes
        expect(whole.scan(/^.* \(NO_ANSWER\)$/).first(shown.size)).to eq(shown)
        expect(text[/bytes: (\d+) notes?/, 1].to_i).to eq(20 - shown.size)
      end
    end

    it "is only the frame if nothing fits" do
      expect(markdown(section("x" * 600, ["a.rb:1"]), max_bytes: 500).lines.grep(/^##|^-/)).to eq([])
    end
  end

  it "refuses a size that holds nothing" do
    expect { markdown(max_bytes: 499) }.to raise_error(ArgumentError, /max_bytes must be an Integer from 500, got 499/)
  end
end
