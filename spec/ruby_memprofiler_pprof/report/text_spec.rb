# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

# Profiles that somebody else wrote may contain commands to a terminal.
RSpec.describe "MemprofilerPprof::Report::Text, without control characters" do
  def report(name)
    MemprofilerPprof::Report.const_get(name)
  end

  def text(notes: [], **members)
    section = report(:Section).new(**members)
    document = report(:Document).new(command: "report", inputs: [], sections: [section], notes: notes)
    report(:Text).new(document, MemprofilerPprof::Report::PLAIN).to_s
  end

  %i[group title summary closing].each do |member|
    it "shows the #{member}" do
      expect(text(member => "a\e[2Jb\nc")).to match(/\A(?:== )?a\?\[2Jb\?c(?: ==)?\n+\z/)
    end
  end

  it "shows the notes of a section" do
    note = report(:Note).new("CODE", "a\e[2Jb")
    section = report(:Section).new(notes: [note, note])
    expect(report(:Text).section(section, MemprofilerPprof::Report::PLAIN)).to eq("a?[2Jb\na?[2Jb")
  end

  it "shows the notes of the document" do
    expect(text(title: "x", notes: [report(:Note).new("CODE", "a\e[2Jb")])).to end_with("\na?[2Jb\n")
  end

  it "shows text that is not valid in its encoding" do
    expect(text(title: "a\xFF\eb")).to eq("a\uFFFD?b\n")
  end

  it "shows the cells of a table" do
    table = report(:Table).new([["N", :left, nil], ["SITE", :left, nil]])
    table.add(["\e1", ["a\eb", "\eb"]])
    table.add_wide(["c\ed", "\ed"], code: "HOLDER")
    expect(text(table: table)).to eq("N   SITE\n?1  a?b\nc?d\n")
  end
end
