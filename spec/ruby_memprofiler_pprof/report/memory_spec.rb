# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe MemprofilerPprof::Report::Memory do
  def report(...)
    described_class.new(RecordedMemory.memory(...))
  end

  def text(...)
    report(...).to_s
  end

  def document(type)
    section = report.section(title: "a.sock", data: { input: "a.sock" })
    document = MemprofilerPprof::Report.const_get(:Document)
                                       .new(command: "memory", inputs: ["a.sock"], sections: [section], notes: [])
    MemprofilerPprof::Report.const_get(type).new(document).to_s
  end

  it "shows lines that add up" do
    expect(text.split("\n\n")[1]).to eq(<<~TEXT.chomp)
         BYTES  SHARE        95% INTERVAL             WHERE
      21.5 MiB    11%                      exact      live objects in Ruby's heap
      22.5 MiB    11%  20.2 MiB..24.8 MiB  estimated  memory that objects own
      44.8 MiB    22%                      estimated  Ruby code (instruction sequences)
      32.0 MiB    16%                      exact      free slots in Ruby's heap
      29.8 MiB    15%                      estimated    kept by 4,000 objects allocated at services/product_card_cache.rb:11
      1.00 MiB   0.5%                      estimated    kept by 900 objects allocated at models/audit.rb:7
      18.0 MiB   8.8%                      exact      free memory that malloc keeps
      29.0 MiB    14%                      remainder  Ruby VM and C libraries
      8.00 MiB   3.9%                      exact      transient heap
           0 B   0.0%                      exact      JIT code
       512 KiB   0.2%                      exact      thread stacks
      1.25 MiB   0.6%                      exact      libraries and files, private
      16.0 MiB   7.9%                      exact      libraries and files, shared
      10.0 MiB   4.9%                      exact      this profiler
       256 KiB   0.1%                      remainder  unexplained
    TEXT
  end

  it "says how much it is, what of it is shared, and what the limit is" do
    expect(text).to start_with(<<~TEXT)
      Process 4711, 2026-11-23 07:00:00 UTC
      204 MiB resident, 213 MiB at most so far. Unexplained: 0.1%.
      189 MiB are this process's own; it shares 15.0 MiB with others.
      Limit: 300 MiB (cgroup v2, 77% of it used).
      Allocator: glibc 2.36. Measured after a walk over the heap, in 46.3 ms.

    TEXT
  end

  it "says what copy-on-write has cost, and what was swapped out" do
    expect(text(copied_bytes: 50 * RecordedMemory::MIB, swap_bytes: RecordedMemory::MIB))
      .to include("189 MiB are this process's own, of which 50.0 MiB were shared before they were written to; it ",
                  "\n1.00 MiB are swapped out.\n")
  end

  it "says that the process was attached to, and what that means at a glance" do
    at = { attached_at: "2026-11-23T06:00:00Z" }
    expect(text(**at)).to include("\nAttached at 2026-11-23 06:00:00 UTC.\n")
    expect(text(full: false, **at))
      .to include("\nAttached at 2026-11-23 06:00:00 UTC: what older objects own counts as the VM's.\n")
  end

  it "says what to do about what is large" do
    expect(text.split("\n\n").last).to eq(<<~TEXT.chomp)
      Gems that the process does not use need not be loaded: `require: false` in the Gemfile.
      Live objects are scattered over Ruby's heap, so that pages with free slots cannot be freed. GC.compact moves objects
      together, where the platform has it. Objects allocated at /srv/shop/app/services/product_card_cache.rb:11 keep the most
      of them. That frees 32.0 MiB at most.
    TEXT
  end

  it "says what is not known, and why" do
    expect(text(RecordedMemory::QUICK, full: false))
      .to include("Measured at a glance, ")
      .and match(/^ unknown +Ruby code \(instruction sequences\) \(takes a walk over the heap\)$/)
  end

  it "says nothing of what is not known at all" do
    unknown = RecordedMemory.lines.map { |line| { key: line[:key], source: "unknown", note: "no /proc" } }
    nothing = RecordedMemory.data.transform_values { nil }
    lines = described_class.new(MemprofilerPprof::Memory.new({ **nothing, lines: unknown })).to_s.lines
    expect(lines.first(3)).to match(["Where the memory is\n", "\n", /\A +BYTES +WHERE\n/])
    expect(lines.drop(3)).to all(match(%r{\Aunknown +\S.* \(no /proc\)\n?\z}))
  end

  it "replaces control characters" do
    held = [{ site: "/a\e[2J.rb:1", bytes: 1e7, objects: 1.0 }]
    expect(text(held_slots: held)).to include("objects allocated at /a?[2J.rb:1\n")
  end

  it "is JSON with all that is known" do
    section = JSON.parse(document(:Json))["sections"].first
    expect(section).to include("input" => "a.sock", "rss_bytes" => 213_647_360, "unexplained_bytes" => 262_144)
    expect(section["lines"].map { |line| line["bytes"] }.sum).to eq(section["rss_bytes"])
  end

  it "is Markdown" do
    expect(document(:Markdown).lines.grep(/\A *- /)).to include(
      "- **RESIDENT**: 204 MiB resident, 213 MiB at most so far. Unexplained: 0.1%.\n",
      "- **LINE** `memory that objects own`: bytes 22.5 MiB, share 11% (20.2 MiB..24.8 MiB), estimated\n",
      "  - **HELD_SLOTS** `kept by 4,000 objects allocated at services/product_card_cache.rb:11`: bytes 29.8 MiB, " \
      "share 15%, estimated\n"
    )
    expect(document(:Markdown)).to include("\n\nLive objects are scattered over Ruby's heap, ")
  end
end
