# frozen_string_literal: true

require "json"

# Where the memory of a process is. Each example has a process of its own, whose memory nobody else changes.
RSpec.describe "memory_data" do
  before { skip "only Linux says where memory is" unless RUBY_PLATFORM.include?("linux") }

  keys = %w[object_slots object_memory code free_slots allocator_free vm_memory transient_heap jit_code thread_stacks
            files_private files_shared profiler unexplained]

  # What the code prints, one ledger a line. It has `quick` and `full`, and `of` for the bytes of a line.
  def ledgers(code, **keywords)
    outcome = run_ruby(<<~RUBY, **keywords)
      require "json"
      def full(of = MemprofilerPprof) = of.send(:memory_data, true)
      def quick(of = MemprofilerPprof) = of.send(:memory_data, false)
      #{code}
    RUBY
    raise outcome.to_s unless outcome.success?

    outcome.stdout.lines.map { |line| JSON.parse(line) }
  end

  def lines(ledger)
    ledger.fetch("lines").to_h { |line| [line.fetch("key"), line] }
  end

  def bytes(ledger, key)
    lines(ledger).fetch(key).fetch("bytes")
  end

  # By how much a line has grown from one ledger to the next.
  def growth(ledgers, key)
    ledgers.each_cons(2).map { |before, after| bytes(after, key) - bytes(before, key) }
  end

  describe "MemprofilerPprof.memory_data" do
    ledger_of_script = nil
    let(:ledger) { ledger_of_script ||= ledgers("puts full").first }

    it "is a frozen String of JSON in UTF-8" do
      data = MemprofilerPprof.memory_data(true)
      expect(data).to be_frozen.and have_attributes(encoding: Encoding::UTF_8)
      expect(JSON.parse(data)).to include("version" => 1, "pid" => Process.pid, "full" => true)
    end

    it "has a line for each key, in order" do
      expect(ledger.fetch("lines").map { |line| line.fetch("key") }).to eq(keys)
    end

    it "adds up to what the process has in memory" do
      known = lines(ledger).values.filter_map { |line| line.fetch("bytes") }
      expect(known.sum).to eq(ledger.fetch("rss_bytes"))
      expect(known).to all(be >= 0)
    end

    it "explains 95 percent of it" do
      expect(ledger.fetch("unexplained_bytes")).to be <= ledger.fetch("rss_bytes") * 0.05
      expect(ledger.fetch("unexplained_bytes")).to eq(bytes(ledger, "unexplained"))
    end

    it "says what Linux says of the process as a whole" do
      rss = File.read("/proc/self/status")[/^VmRSS:\s*(\d+) kB/, 1].to_i * 1024
      ledger = JSON.parse(MemprofilerPprof.memory_data(true))
      expect(ledger.fetch("rss_bytes")).to be_within(20).percent_of(rss)
      expect(ledger.fetch("peak_rss_bytes")).to be >= rss * 0.9
      expect(ledger.values_at("shared_bytes", "private_bytes").sum).to eq(ledger.fetch("rss_bytes"))
    end

    it "counts the slots of objects and those without" do
      before, after, freed = ledgers(<<~RUBY)
        GC.start
        puts full
        kept = Array.new(200_000) { Object.new }
        GC.start
        puts full
        kept.select!.with_index { |_, index| (index % 100).zero? }
        GC.start
        puts full
      RUBY
      expect(growth([before, after], "object_slots").first).to be >= 200_000 * 40
      expect(growth([after, freed], "object_slots").first).to be_between(-13_000_000, -6_000_000)
      expect(growth([after, freed], "free_slots").first).to be >= 6_000_000
    end

    it "counts pages without objects" do
      before, empty = ledgers(<<~RUBY)
        kept = Array.new(400_000) { Object.new }
        GC.start
        puts full
        kept = nil
        GC.start
        puts full
      RUBY
      # Ruby frees some of these pages.
      grown = empty.fetch("empty_page_bytes") - before.fetch("empty_page_bytes")
      expect(grown).to be_between(4_000_000, bytes(empty, "free_slots"))
    end

    it "counts what objects own" do
      expect(growth(ledgers(<<~RUBY), "object_memory").first).to be_within(1_000_000).of(40_000_000)
        puts full
        kept = Array.new(4_000) { "x" * 10_000 }
        GC.start
        puts full
      RUBY
    end

    it "counts code" do
      grown = ledgers(<<~RUBY)
        puts full
        2_000.times { |number| eval("def method_\#{number}(a, b) = [a + b, a * b, { a: a, b: b }]") }
        puts full
      RUBY
      expect(growth(grown, "code").first).to be >= 1_000_000
    end

    it "counts stacks" do
      grown = ledgers(<<~RUBY)
        puts full
        # A Hash is gone through in C on every Ruby.
        def descend(depth, &block) = depth.zero? ? block.call : { 1 => 2 }.each { descend(depth - 1, &block) }
        queue = Queue.new
        threads = Array.new(8) { Thread.new { descend(300) { queue << true; sleep } } }
        8.times { queue.pop }
        puts full
      RUBY
      expect(growth(grown, "thread_stacks").first).to be >= 8 * 100_000
    end

    it "counts what the allocator keeps" do
      skip "this allocator says nothing" if ledger.fetch("allocator").match?(/musl|unknown/)

      # Between blocks that stay, nothing can go back to the system.
      kept, freed = ledgers(<<~RUBY)
        blocks = Array.new(20_000) { "x" * 2_000 }
        puts full
        blocks.select!.with_index { |_, index| (index % 20).zero? }
        GC.start
        puts full
      RUBY
      expect(growth([kept, freed], "allocator_free").first).to be >= 20_000_000
      expect(growth([kept, freed], "object_memory").first).to be_within(1_000_000).of(-38_000_000)
    end

    it "knows large blocks" do
      grown = ledgers(<<~RUBY)
        puts full
        kept = Array.new(4) { "x" * 20_000_000 }
        puts full
      RUBY
      expect(growth(grown, "object_memory").first).to be_within(1_000_000).of(80_000_000)
      expect(growth(grown, "unexplained").first.abs).to be < 1_000_000
    end

    it "lets other threads run during the walk" do
      ledger, = ledgers(<<~RUBY)
        kept = Array.new(1_000_000) { |number| number.to_s * 10 }
        turns = 0
        thread = Thread.new { loop { turns += 1; Thread.pass } }
        Thread.pass until turns.positive?
        before = turns
        data = full
        abort "no turn" if turns == before
        puts data
      RUBY
      expect(ledger.fetch("full")).to be true
    end

    it "is not upset by extensions" do
      reason = CompiledExtension.missing
      skip reason if reason

      ledger, = ledgers(<<~RUBY, args: [CompiledExtension.new("hostile").library])
        require ARGV.first
        kept = Hostile.constants.grep(/\\A[A-Z][a-z]/).map { |name| Hostile.const_get(name) }.grep(Class)
                      .flat_map { |type| Array.new(50) { type.new } }
        abort "none" if kept.empty?
        puts full
      RUBY
      expect(ledger.fetch("full")).to be true
    end

    it "does not walk beside other Ractors" do
      ledger, = ledgers(<<~RUBY)
        ractor = Ractor.new { Ractor.receive }
        puts full
        ractor.send(nil)
      RUBY
      expect(ledger.fetch("full")).to be false
    end
  end

  describe "a quick one" do
    ledger_of_script = nil
    let(:ledger) { ledger_of_script ||= ledgers("puts quick").first }

    it "adds up to what the process has in memory" do
      expect(lines(ledger).values.filter_map { |line| line.fetch("bytes") }.sum).to eq(ledger.fetch("rss_bytes"))
    end

    it "explains 90 percent of it" do
      expect(ledger.fetch("unexplained_bytes")).to be <= ledger.fetch("rss_bytes") * 0.1
    end

    it "leaves out what only a walk can tell" do
      expect(ledger.fetch("full")).to be false
      expect(lines(ledger).fetch("code")).to include("bytes" => nil, "source" => "unknown", "note" => /walk/)
    end

    it "does not take for free what was allocated since the allocator said how much that is" do
      # Going through all these free blocks takes long.
      earlier, later = ledgers(<<~RUBY)
        blocks = Array.new(1_000_000) { "x" * 200 }
        blocks.select!.with_index { |_, index| index.odd? }
        GC.start
        puts quick
        kept = Array.new(3_000) { "y" * 20_000 }
        puts quick
      RUBY
      skip "this allocator says nothing" unless bytes(earlier, "allocator_free")

      expect(lines(later).fetch("allocator_free"))
        .to include("bytes" => nil, "note" => /takes long/)
        .or include("bytes" => be < bytes(earlier, "allocator_free") + 20_000_000)
    end

    it "agrees with a full one about slots and stacks" do
      full, quick = ledgers("GC.start; GC.disable; puts full, quick")
      %w[object_slots free_slots files_shared files_private jit_code].each do |key|
        expect(bytes(quick, key)).to be_within([bytes(full, key) * 0.15, 1_000_000].max).of(bytes(full, key)), key
      end
    end
  end

  describe "Collector#memory_data" do
    it "knows the profiler's own memory" do
      without, with = ledgers(<<~RUBY)
        puts full
        collector = new_collector(sample_rate: 1.0).start
        kept = Array.new(100_000) { Object.new }
        puts full(collector)
      RUBY
      expect(bytes(without, "profiler")).to be < 100_000
      expect(bytes(with, "profiler")).to be >= 20_000 * 24
    end

    it "knows where the profiler's large tables are" do
      grown = ledgers(<<~RUBY)
        collector = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000)
        puts full(collector)
        collector.start
        kept = Array.new(500_000) { Object.new }
        puts full(collector), quick(collector)
      RUBY
      expect(growth(grown.first(2), "profiler").first).to be >= 500_000 * 16
      expect(growth(grown.first(2), "unexplained").first).to be < 1_000_000
      expect(bytes(grown[2], "profiler")).to be_within(15).percent_of(bytes(grown[1], "profiler"))
    end

    it "knows which sites hold free slots" do
      ledger, = ledgers(<<~RUBY)
        collector = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start
        GC.disable
        kept = []
        2_000.times do
          200.times { Object.new }
          kept << Object.new
        end
        GC.enable
        3.times { GC.start }
        puts full(collector)
      RUBY
      largest = ledger.fetch("held_slots").first
      expect(largest).to include("site" => "-e:9", "objects" => be_within(20).of(2000))
      expect(largest.fetch("bytes")).to be_within(50).percent_of(bytes(ledger, "free_slots"))
    end

    it "estimates quickly what objects own" do
      ledger, = ledgers(<<~RUBY)
        collector = new_collector(sample_rate: 0.1, seed: 1).start
        kept = Array.new(20_000) { "x" * 1_000 }
        puts quick(collector)
      RUBY
      line = lines(ledger).fetch("object_memory")
      expect(line).to include("source" => "estimated", "note" => /since the profiler was started/)
      expect(line.fetch("low")..line.fetch("high")).to cover(20_000_000)
      expect(line.fetch("high") - line.fetch("low")).to be < 15_000_000
    end

    it "estimates quickly what objects own, too, if every other one owns nothing" do
      ledger, = ledgers(<<~RUBY)
        text = "x"
        kept = Array.new(8_000)
        filler = "y" * 100_000_000
        GC.disable
        collector = new_collector(sample_rate: 1.0, max_heap_samples: 100_000).start
        (0...7_000).step(2) do |index|
          kept[index] = Object.new
          kept[index + 1] = text.ljust(5_000)
        end
        puts quick(collector)
      RUBY
      line = lines(ledger).fetch("object_memory")
      expect(line.fetch("low")..line.fetch("high")).to cover(3_500 * 5_001)
    end

    it "leaves out quickly what objects own in the transient heap", skip: ("needs one" if RUBY_VERSION >= "3.3") do
      ledger, = ledgers(<<~RUBY)
        collector = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start
        # A collection moves what survives it out of there.
        GC.disable
        kept = Array.new(100_000) { Array.new(16) }
        puts quick(collector)
      RUBY
      objects, transient = %w[object_memory transient_heap].map { |key| bytes(ledger, key) }
      expect([transient, objects]).to match([be > 8_000_000, be < 12_800_000 - (transient / 2)])
    end

    it "estimates quickly what Strings own that have instance variables" do
      ledger, = ledgers(<<~RUBY)
        collector = new_collector(sample_rate: 0.1, seed: 1).start
        kept = Array.new(20_000) { ("x" * 1_000).tap { |string| string.instance_variable_set(:@safe, true) } }
        puts quick(collector)
      RUBY
      line = lines(ledger).fetch("object_memory")
      expect(line.fetch("low")..line.fetch("high")).to cover(20_000_000)
    end

    it "works before the start and after the end" do
      ledgers = ledgers(<<~RUBY)
        collector = new_collector
        puts quick(collector), full(collector)
        collector.start.stop
        collector.flush
        puts quick(collector), full(collector)
      RUBY
      expect(ledgers.map { |ledger| ledger.fetch("full") }).to eq([false, true, false, true])
    end
  end

  describe "in a forked child" do
    it "knows which pages are no longer shared" do
      first, later = ledgers(<<~RUBY)
        collector = new_collector(sample_rate: 0.01).start
        kept = "x" * 30_000_000
        reader, writer = IO.pipe
        pid = fork do
          writer.puts full(collector)
          (0...20_000_000).step(1000) { |index| kept.setbyte(index, 0) }
          writer.puts full(collector)
          writer.close
          exit!(true)
        end
        writer.close
        puts reader.read
        Process.wait(pid)
      RUBY
      expect(first.fetch("copied_bytes")).to be < 15_000_000
      expect(later.fetch("copied_bytes") - first.fetch("copied_bytes")).to be_between(19_000_000, 25_000_000)
      expect(first.fetch("shared_bytes") - later.fetch("shared_bytes")).to be_between(19_000_000, 25_000_000)
    end

    it "does not take for copied what it has given back" do
      ledger, = ledgers(<<~RUBY)
        collector = new_collector(sample_rate: 0.01).start
        given_back = "x" * 200_000_000
        kept = "x" * 10_000_000
        pid = fork do
          given_back.clear
          (0...10_000_000).step(1000) { |index| kept.setbyte(index, 0) }
          puts full(collector)
        end
        Process.wait(pid)
      RUBY
      expect(ledger.fetch("copied_bytes")).to be_between(9_000_000, 100_000_000)
    end

    it "is unknown once the parent has ended" do
      before, after = ledgers(<<~RUBY)
        collector = new_collector(sample_rate: 0.01).start
        ended, last = IO.pipe
        Process.wait(fork do
          said, writer = IO.pipe
          parent = Process.pid
          fork do
            puts full(collector)
            $stdout.flush
            writer.puts
            sleep 0.01 while Process.ppid == parent
            puts full(collector)
          end
          said.gets
          exit!(true)
        end)
        last.close
        ended.read
      RUBY
      expect([before, after].map { |ledger| ledger.fetch("copied_bytes") }).to match([be_an(Integer), nil])
    end

    it "is unknown in a process that was not forked" do
      ledger, = ledgers("puts full(new_collector.start)")
      expect(ledger.fetch("copied_bytes")).to be_nil
    end
  end

  describe "a profile" do
    it "has a quick one as a comment" do
      comments = new_collector.start.flush.profile.comments.grep(/\Amemory=/)
      expect(comments.size).to eq(1)
      ledger = JSON.parse(comments.first.delete_prefix("memory="))
      expect(ledger).to include("full" => false, "pid" => Process.pid)
      expect(ledger.fetch("lines").map { |line| line.fetch("key") }).to eq(keys)
    end
  end
end
