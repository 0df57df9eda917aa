# frozen_string_literal: true

require "json"

# Where the memory of a process is, where Linux does not say all of it.
RSpec.describe "memory_data", :faults do
  # The lines of a full ledger and of a quick one, without what is denied.
  def ledgers_without(*denied)
    printed_by(<<~RUBY).map { |line| JSON.parse(line) }
      #{denied.inspect}.each { |file| faults.inject(file, :deny) }
      puts MemprofilerPprof.memory_data(true), MemprofilerPprof.memory_data(false)
      collector = new_collector.start
      puts collector.flush.profile.comments.grep(/\\Amemory=/).map { |comment| comment.delete_prefix("memory=") }
    RUBY
  end

  def bytes(ledger)
    ledger.fetch("lines").to_h { |line| line.values_at("key", "bytes") }
  end

  # Nothing but the files is missing.
  def expect_sums(ledgers)
    expect(ledgers.map { |ledger| bytes(ledger).values.compact.sum })
      .to eq(ledgers.map { |ledger| ledger.fetch("rss_bytes") })
  end

  it "knows what Ruby says without any of Linux's files" do
    ledgers = ledgers_without("/proc/self/status", "/proc/self/maps", "/proc/self/smaps", "/proc/self/pagemap",
                              "/proc/self/mem")
    expect(ledgers.size).to eq(3)
    expect(ledgers.map { |ledger| ledger.values_at("rss_bytes", "unexplained_bytes") }).to all(eq([nil, nil]))
    expect(ledgers.map { |ledger| bytes(ledger).fetch("object_slots") }).to all(be_positive)
    expect(bytes(ledgers.first).values_at("code", "object_memory")).to all(be_positive)
  end

  it "says that it cannot tell parts apart without the pages" do
    ledgers = ledgers_without("/proc/self/pagemap")
    expect_sums(ledgers)
    expect(ledgers.map { |ledger| bytes(ledger).fetch("unexplained") }).to all(be_nil)
    expect(bytes(ledgers.first).values_at("files_shared", "files_private", "thread_stacks")).to all(be_positive)
  end

  describe "without the pages" do
    # Of a quick ledger.
    def line(key)
      data, own = printed_by(<<~RUBY)
        collector = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start
        kept = Array.new(100_000) { Object.new }
        faults.inject("/proc/self/pagemap", :deny)
        puts collector.send(:memory_data, false), collector.stats[:bytes]
      RUBY
      [JSON.parse(data).fetch("lines").find { |line| line.fetch("key") == key }, own.to_i]
    end

    it "takes all of the profiler's tables to be in memory" do
      line, own = line("profiler")
      expect(line).to include("bytes" => be_within(5).percent_of(own), "source" => "estimated",
                              "note" => /, in memory or not: .* cannot be looked at/)
    end

    it "does not say that there is no transient heap", skip: ("needs one" if RUBY_VERSION >= "3.3") do
      expect(line("transient_heap").first).to include("bytes" => nil, "note" => /cannot be looked at/)
    end
  end

  it "explains less without the memory's content" do
    ledgers = ledgers_without("/proc/self/mem")
    expect_sums(ledgers)
    expect(bytes(ledgers.first).fetch("unexplained")).to be >= 0
  end

  it "walks over the whole heap even if there is no time left after the pages that it knows" do
    walk, = ledgers_without("heap walk slice")
    expect(walk.fetch("full")).to be(true)
    expect(bytes(walk).fetch("object_slots")).to be_positive
  end

  it "has totals without the lists of mappings" do
    ledgers = ledgers_without("/proc/self/maps", "/proc/self/smaps")
    expect_sums(ledgers)
    expect(ledgers.first.fetch("private_bytes")).to be_nil
  end
end
