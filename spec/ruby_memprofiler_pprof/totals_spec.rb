# frozen_string_literal: true

# What profiles say about what they cannot see.
RSpec.describe "The totals in a profile", :liveness, :moving do
  # Nothing dies between two readings of the same figure, and nothing dead is left to sweep.
  around do |example|
    GC.start
    GC.disable
    example.run
  ensure
    GC.enable
  end

  let(:collector) { new_collector(sample_rate: 1.0) }

  def totals
    collector.flush.profile.comments.grep(/\A\w+=/).to_h { |comment| comment.split("=", 2) }
  end

  def resident_bytes
    File.read("/proc/self/status")[/^VmRSS:\s*(\d+) kB/, 1].to_i * 1024
  end

  it "have the resident memory of a process with any name" do
    outcome = run_ruby(<<~'RUBY')
      File.binwrite("/proc/self/comm", "caf\xC3")
      collector = new_collector.start
      puts collector.flush.profile.comments.grep(/rss_bytes=\d/).size
    RUBY
    expect(outcome.stdout).to eq("2\n"), outcome.to_s
  end

  it "are those of this process" do
    before = Time.now.to_f.round(3)
    collector.start
    figures = totals
    expect(figures).to include("pid" => Process.pid.to_s)
    expect(figures.fetch("started_at").to_f).to be_between(before, Time.now.to_f.round(3))
  end

  it "are what the VM counts" do
    collector.start
    keys = %i[heap_live_slots total_allocated_objects minor_gc_count major_gc_count]
    low = GC.stat.slice(*keys)
    figures = totals
    high = GC.stat.slice(*keys)
    expect(keys.map { |key| figures.fetch(key.to_s).to_i.between?(low[key] * 0.9, high[key] * 1.1) }).to all(be true)
    expect(figures.fetch("heap_bytes").to_i)
      .to be_within(5).percent_of(GC.stat(:heap_allocated_pages) * GC::INTERNAL_CONSTANTS[:HEAP_PAGE_SIZE])
  end

  it "include the physical memory" do
    skip "there is no /proc" unless File.exist?("/proc/self/status")

    collector.start
    expect(totals.fetch("rss_bytes").to_i).to be_within(20).percent_of(resident_bytes)
  end

  it "include the most physical memory that there has been" do
    skip "there is no /proc" unless File.exist?("/proc/self/status")

    collector.start
    highest = File.read("/proc/self/status")[/^VmHWM:\s*(\d+) kB/, 1].to_i * 1024
    expect(totals.fetch("peak_rss_bytes").to_i).to be >= highest
    expect(collector.stats[:peak_rss_bytes]).to be >= highest
  end

  it "include how many slots were in use before" do
    slots = GC.stat(:heap_live_slots)
    collector.start
    @kept = Array.new(20_000) { Object.new }
    expect(totals.fetch("live_slots_at_start").to_i).to be_within(5_000).of(slots)
  end
end
