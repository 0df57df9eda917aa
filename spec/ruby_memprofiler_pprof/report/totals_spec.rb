# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/report"

RSpec.describe MemprofilerPprof::Report::Totals do
  def totals(**comments)
    described_class.new(Pprof::Maker.new(comments: comments).profile)
  end

  it "are the numbers that the comments have" do
    found = totals(pid: 7, started_at: 1.5, missed_collections: "3: earlier live samples were dropped")
    expect(found).to have_attributes(process: [7, 1.5], started_at: 1.5)
    expect(found["missed_collections"]).to eq(3)
  end

  it "have nothing where there is no number, or one that no computer counts to" do
    %w[1e999 1e5 e -. 1.2.3 3x 0x7].push("9" * 400).each do |text|
      found = totals(pid: text, started_at: text)
      expect([found["pid"], found.started_at]).to eq([nil, nil]), text
      expect(JSON.parse(JSON.generate(found.to_h))).to include("started_at" => nil)
    end
  end
end
