# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/report"

RSpec.describe "docs/where-memory-is.md" do
  let(:page) { "docs/where-memory-is.md" }
  let(:memory) { RecordedMemory.memory }

  # The output that follows a command, or a sentence.
  def printed(text)
    Manual.section(page)[/#{Regexp.escape(text)}.*?\n\n((?:    .*\n|\n)+)/, 1].gsub(/^    /, "").strip
  end

  it "has code that works" do
    code, = Manual.ruby(page, "In Ruby")
    outcome = run_ruby(<<~RUBY)
      require "#{File.expand_path("../support/memory", __dir__)}"
      RecordedMemory.answer_of(MemprofilerPprof)
      #{code}
    RUBY
    expect(outcome.stderr).to eq("")
    expect(outcome.stdout.lines).to include("free slots in Ruby's heap: 33554432\n",
                                            "Ruby code (instruction sequences): takes a walk over the heap\n")
  end

  it "has the members of the JSON" do
    expect(Manual.names(page, "JSON").uniq).to match_array(memory.to_h.keys | %i[input attached_at])
    cells = Manual.rows(page, "JSON").to_h do |name, text|
      [name.delete("`"), text.scan(/`(\w+)`/).flatten.map(&:to_sym)]
    end
    { "lines" => memory.lines, "advice" => memory.advice, "held_slots" => memory.held_slots }.each do |name, structs|
      expect(cells[name]).to include(*structs.first.to_h.keys)
    end
    expect(cells["limit"]).to eq(RecordedMemory.data[:limit].keys)
  end

  it "has all lines" do
    expect(Manual.rows(page, "What it says").map(&:first)).to include(*memory.lines.map(&:name))
    keys = Manual.section(page, "JSON")[/The keys of lines: (.*)\z/m, 1].scan(/`(\w+)`/).flatten
    expect(keys).to eq(memory.lines.map { |line| line.key.to_s })
  end

  it "shows what the command prints" do
    # After a walk nothing but the free slots' owners is estimated.
    lines = RecordedMemory.lines.map do |line|
      line[:source] == "estimated" ? { **line, source: "exact", low: nil, high: nil } : line
    end
    text = RecordedMemory.memory(lines: lines).to_s.gsub("/srv/shop/", "")
    expect(printed("$ memprofiler memory tmp/memprofiler.sock")).to eq("tmp/memprofiler.sock: #{text}")
  end

  it "shows what the command prints of several processes" do
    memories = [[9516, 12, nil, 22.5], [9531, 43, 21, 30.25], [9532, 49, 24, 33.5]].map do |pid, own, copied, objects|
      own *= RecordedMemory::MIB
      shared = RecordedMemory.memory({ object_memory: objects }).rss - own
      RecordedMemory.memory({ object_memory: objects }, pid: pid, private_bytes: own, shared_bytes: shared,
                                                        copied_bytes: copied && (copied * RecordedMemory::MIB))
    end
    report = MemprofilerPprof::Report::Workers.new(memories, memories.map { |each| "tmp/sockets/#{each.pid}.sock" })
    style = MemprofilerPprof::Report::Style.new(100, false)
    expect(printed("$ memprofiler memory tmp/sockets")).to eq(report.to_s(style))
  end
end
