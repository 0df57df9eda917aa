# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe MemprofilerPprof::Report::Retainers do
  let(:report) { described_class.new(RecordedRetainers.retainers) }

  def text(**changes)
    described_class.new(RecordedRetainers.retainers(**changes)).to_s
  end

  # The answer with other members of its first site, or of the holder of that.
  def with(**changes)
    text(sites: sites(**changes))
  end

  def sites(site: {}, holder: {})
    sites = RecordedRetainers.answer[:sites].first(1)
    sites.first.merge!(site)
    sites.first[:holders].first.merge!(holder)
    sites
  end

  def section_document(markdown: true, report: self.report)
    section = report.section(title: "a.sock")
    document = MemprofilerPprof::Report.const_get(:Document)
                                       .new(command: "why", inputs: [], sections: [section], notes: [])
    MemprofilerPprof::Report.const_get(markdown ? :Markdown : :Json).new(document).to_s
  end

  it "says of each line what holds it, and what that retains" do
    expect(report.to_s).to end_with(<<~TEXT.chomp)


      34.9 MiB (29.0 MiB..40.7 MiB) in 13,400 objects allocated at services/product_card_cache.rb:11  ProductCardCache.fetch
        of class ActionView::OutputBuffer 98%, String 2.0%
        100% held by
            ProductCardCache  services/product_card_cache.rb:5  retains 38.9 MiB
            @cards → Hash (6,724)                               retains 38.9 MiB
          one of them
            {value} → ActionView::OutputBuffer

      46.9 KiB (20.5 KiB..73.3 KiB) in 1,200 objects allocated at models/audit.rb:7  Audit.add
        of class String 100%
        50% held by
            Audit  models/audit.rb:1                retains 87.9 KiB
            ::LOG → Array (900)  models/audit.rb:2  retains 85.9 KiB
          one of them
            [element] → String
        25% held by 4 alike, such as
            Thread "puma 003"        retains 29.3 KiB
            local cache → Hash (40)  retains 19.5 KiB
            (3 steps of activesupport left out)
          also by
            Reports.@latest → Hash
          one of them
            [:name] → String
        25% unreachable
    TEXT
  end

  it "says what the answer covers, and what it took" do
    expect(report.to_s).to start_with(<<~TEXT)
      Process 4711, 2026-11-22 21:52:13 UTC
      1.02 M objects with 118 MiB are reachable, by 2.35 M references.
      Paused the program for 4.21 ms; the answer took 312 ms.
      Unreachable: about 300 objects with 11.7 KiB, garbage or held by a finalizer.
      Left out: 2 samples so new that their lines are not known yet.
    TEXT
  end

  it "says how long the GVL was held if it was done in the process" do
    text = text(in_process: true, held_nanoseconds: 1_230_000_000, pause_nanoseconds: nil)
    expect(text).to include("\nIn process: held the GVL for 1.23 s.\n").and(satisfy { |all| !all.include?("Paused") })
  end

  it "says that a second copy was needed" do
    expect(text(attempts: 2)).to include("the answer took 312 ms. The first copy of the process gave no answer.\n")
  end

  it "leaves out what there is nothing to say of" do
    expect(text(unreachable: { samples: 0, objects: 0.0, bytes: 0.0 }, unnamed_samples: 0))
      .not_to match(/^Unreachable|^Left out/)
  end

  describe "of the largest" do
    let(:largest) do
      link = RecordedRetainers.answer[:sites].first[:holders].first[:chain].first
      [{ bytes: 57_567_872, alike: 1, phrase: "Latency::TIMES → Array (5,000,000)", chain: [link], folded: nil },
       { bytes: 1_600_000, alike: 4, phrase: "Thread \"puma 003\" local buf → String", chain: [link], folded: nil }]
    end

    it "says at the end what keeps how much of the heap alive" do
      expect(text(largest: largest)).to end_with(<<~TEXT.chomp)


        Largest, whoever allocated it
          54.9 MiB   47%  Latency::TIMES → Array (5,000,000)
          1.53 MiB  1.3%  4 alike, such as Thread "puma 003" local buf → String
      TEXT
    end

    it "says it even if there are no samples" do
      expect(text(largest: largest, sites: [])).to match(/^  54\.9 MiB .*No live samples of such objects/m)
    end

    it "says it in Markdown and JSON" do
      report = described_class.new(RecordedRetainers.retainers(largest: largest))
      expect(section_document(report: report))
        .to include("- **LARGEST** `Latency::TIMES → Array (5,000,000)`: 54.9 MiB, share 47%\n")
      section = JSON.parse(section_document(markdown: false, report: report), symbolize_names: true)[:sections].first
      expect(section[:largest].first).to include(code: "LARGEST", bytes: 57_567_872, alike: 1, chain: [Hash])
    end

    it "fits into a narrow terminal, without control characters" do
      style = MemprofilerPprof::Report::Style.new(40, false)
      hostile = [largest.first.merge(phrase: "#{"x" * 80}\e[2J")]
      lines = described_class.new(RecordedRetainers.retainers(largest: hostile)).to_s(style).lines
      expect(lines.last).to match(/\A  54\.9 MiB  47%  x+\.\.\.x+\?\[2J\z/).and(satisfy { |line| line.size <= 40 })
    end
  end

  it "says that there is nothing" do
    expect(text(sites: [])).to end_with("\n\nNo live samples of such objects: none were allocated since the profiler " \
                                        "started, or none was sampled.")
  end

  it "says low confidence below ten samples" do
    bytes = RecordedRetainers.answer[:sites].first[:bytes].merge(samples: 9.0)
    expect(with(site: { bytes: bytes })).to include(" in 13,400 objects, low confidence, allocated at ")
  end

  it "shows the three main holders, and how many more there are" do
    holder = RecordedRetainers.answer[:sites].first[:holders].first
    text = with(site: { holders: [0.5, 0.2, 0.1, 0.1, 0.1].map { |share| { **holder, share: share } } })
    expect(text.scan(/^  (\S+ held by.*)/).flatten)
      .to eq(["50% held by", "20% held by", "10% held by", "20% held by 2 others"])
    expect(with(site: { holders: [holder] * 4 })).to end_with("  100% held by 1 other")
    expect(with(site: { other_holders: 40, other_holders_bytes: 3_657_000.0 }))
      .to end_with("\n  10% held by 40 others")
  end

  it "says that there are other holders, even if it does not know them" do
    expect(with(holder: { exclusive: false })).to include("  100% held by (among others)\n")
  end

  it "prints no control characters of names" do
    link = RecordedRetainers.answer[:sites].first[:holders].first[:chain].first
    hostile = { chain: [{ **link, text: "\e[2JFoo" }], folded: "\ebar", also: ["\ebaz"] }
    text = with(holder: hostile, site: { function: "\e[H" })
    expect(text).to include("?[2JFoo", "(?bar left out)", "      ?baz\n", "?[H")
    expect(text).not_to include("\e")
  end

  it "fits into a narrow terminal" do
    lines = report.to_s(MemprofilerPprof::Report::Style.new(60, false)).lines.map(&:chomp).drop(5)
    expect(lines.map(&:size).max).to be <= 60
    expect(lines).to include(/\A      ProductCardCache +retains 38\.9 MiB\z/)
  end

  it "shows of a recording the paths alone" do
    recorded = MemprofilerPprof::Retainers.load(RecordedRetainers.pprof, limit: 1)
    expect(described_class.new(recorded).to_s).to eq(<<~TEXT.chomp)
      Process 4711, 2026-11-22 21:52:13 UTC

      34.9 MiB (29.0 MiB..40.8 MiB) in 13,400 objects allocated at /srv/shop/app/services/product_card_cache.rb:11
        of class ActionView::OutputBuffer 98%, String 2.0%
        100% held by
            ProductCardCache  /srv/shop/app/services/product_card_cache.rb:5
            ProductCardCache.@cards → Hash
          one of them
            Hash → values → ActionView::OutputBuffer
    TEXT
  end

  it "is Markdown, with an item for each holder below that of its line" do
    expect(section_document).to end_with(<<~TEXT)
      - **HEAP**: 1.02 M objects with 118 MiB are reachable, by 2.35 M references.
      - **PAUSED**: Paused the program for 4.21 ms; the answer took 312 ms.
      - **UNREACHABLE**: Unreachable: about 300 objects with 11.7 KiB, garbage or held by a finalizer.
      - **UNNAMED**: Left out: 2 samples so new that their lines are not known yet.
      - **SITE** `services/product_card_cache.rb:11  ProductCardCache.fetch`: 34.9 MiB (29.0 MiB..40.7 MiB), objects 13,400 (11,143..15,658)
        - **HOLDER** `ProductCardCache.@cards → Hash (6,724)`: share 100%, retains 38.9 MiB
      - **SITE** `models/audit.rb:7  Audit.add`: 46.9 KiB (20.5 KiB..73.3 KiB), objects 1,200 (524..1,876)
        - **HOLDER** `Audit::LOG (constant, app/models/audit.rb:2) → Array (900)`: share 50%, retains 85.9 KiB
        - **HOLDER** `Thread "puma 003" local cache → Hash (40)`: share 25%, retains 19.5 KiB
        - **UNREACHABLE** `unreachable`: share 25%
    TEXT
  end

  it "is Markdown that counts the holders it leaves out" do
    retainers = RecordedRetainers.retainers(sites: sites(site: { other_holders: 40, other_holders_bytes: 3_657_000.0 }))
    expect(section_document(report: described_class.new(retainers)))
      .to end_with("\n  - **HOLDER** `40 others`: share 10%\n")
  end

  it "is JSON, with full names and exact numbers" do
    section = JSON.parse(section_document(markdown: false))["sections"].first
    expect(section).to include("pid" => 4711, "pause_seconds" => 0.004212345, "objects" => 1_017_129,
                               "unreachable" => { "samples" => 3, "objects" => 300.0, "bytes" => 12_000.0 })
    expect(section["notes"].map { |note| note["code"] }).to eq(%w[HEAP PAUSED UNREACHABLE UNNAMED])
    finding = section["findings"].first
    expect(finding).to include("code" => "SITE", "name" => RecordedRetainers::SITE,
                               "bytes" => include("value" => 36_570_000, "low_confidence" => false))
    expect(finding).to include("other_holders" => 0, "other_holders_bytes" => 0.0)
    expect(finding["holders"].first)
      .to include("code" => "HOLDER", "phrase" => "ProductCardCache.@cards → Hash (6,724)", "alike" => 1)
    expect(finding["holders"].first["chain"].last).to include("reference" => "@cards", "retained" => 40_760_000)
  end
end
