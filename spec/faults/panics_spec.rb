# frozen_string_literal: true

# A panic caused by a bug in the extension: the program goes on; the collector is off, and says where it panicked.
RSpec.describe "a panic", :faults do
  { "NEWOBJ" => :auto, "GC_END_MARK" => :auto, "FREEOBJ" => :freeobj }.each do |hook, liveness|
    context "when in the hook #{hook}" do
      def lines(hook, liveness)
        printed_by(<<~RUBY)
          collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, liveness: :#{liveness}).start
          faults.inject("#{hook}", :panic)
          1000.times { Object.new }
          GC.start
          puts collector.running?, collector.stats[:failure]
          2.times do
            begin
              collector.flush
            rescue MemprofilerPprof::InternalError => e
              puts e.message
            end
          end
          GC.start
          puts Array.new(1000) { Object.new }.size, MemprofilerPprof.collectors.size
        RUBY
      end

      it "switches the collector off, which says so, and changes nothing else" do
        message = "the collector switched itself off after a panic in its #{hook}; please report this bug"
        expect(lines(hook, liveness)).to eq(["false", hook, message, message, "1000", "0"])
      end
    end
  end

  { "naming job" => {}, "backtrace job" => { bt_method: :backtrace_locations } }.each do |job, options|
    it "switches the collector off when in its #{job}, without which the program goes on" do
      lines = printed_by(<<~RUBY)
        collector = new_collector(sample_rate: 1.0, **#{options}).start
        faults.inject("#{job}", :panic)
        Array.new(100) { Class.new.new } while collector.running?
        puts collector.stats[:failure]
        begin
          collector.flush
        rescue MemprofilerPprof::InternalError => e
          puts e.message
        end
        puts MemprofilerPprof.collectors.size, collector.stats[:samples] < 1_000_000
      RUBY
      expect(lines).to match([job, /after a panic in its #{job}/, "0", "true"])
    end
  end

  ["allocations", "live samples", "visit", "extract", "encode", "commit"].each do |phase|
    [true, false].each do |yield_gvl|
      it "switches the collector off when in a flush's phase '#{phase}' with yield_gvl: #{yield_gvl}" do
        lines = printed_by(<<~RUBY)
          collector = new_collector(sample_rate: 1.0).start
          kept = Array.new(1000) { Object.new }
          faults.inject("flush: #{phase}", :panic)
          begin
            collector.flush(yield_gvl: #{yield_gvl})
          rescue MemprofilerPprof::InternalError => e
            puts e.message
          end
          GC.start
          puts collector.running?, collector.stats[:failure], MemprofilerPprof.collectors.size
          puts new_collector(sample_rate: 1.0).profile { kept << Object.new }.heap_samples_count > 0
        RUBY
        expect(lines).to match([/after a panic in its flush/, "false", "flush", "0", "true"])
      end
    end
  end

  it "leaves the tables alone, whatever is called, and lets the collector stop" do
    lines = printed_by(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      reader = collector.open_reader
      1000.times { Object.new }
      # What is left is the reader's alone.
      collector.flush(gc: true)
      faults.inject("GC_END_MARK", :panic)
      GC.start
      puts collector.stats[:failure], entries = collector.stats[:unreported_entries]
      collector.sample_rate = 0.5
      Process.wait(fork { puts collector.stats[:unreported_entries] == entries })
      reader.close
      puts collector.stats[:unreported_entries] == entries
      collector.stop
      puts collector.running?, MemprofilerPprof.collectors.size
    RUBY
    expect(lines).to match(["GC_END_MARK", /\A[1-9]/, "true", "true", "false", "0"])
  end

  it "gives the mute back when in Ruby code that a flush calls" do
    lines = printed_by(<<~RUBY)
      # There can be 64 at a time.
      65.times do
        collector = new_collector.start
        faults.inject("lifted mute", :panic)
        collector.flush
      rescue MemprofilerPprof::InternalError
        next
      end
      MemprofilerPprof.without_profiling { puts MemprofilerPprof.muted? }
    RUBY
    expect(lines).to eq(["true"])
  end

  it "lets the watch of the memory end" do
    lines = printed_by(<<~RUBY)
      collector = new_collector.start
      faults.inject("memory watch", :panic)
      threads = -> { Dir.children("/proc/self/task") }
      before = threads.call
      # Nobody waits for the alarm, which comes at once.
      MemprofilerPprof::MemoryWatch.begin(collector, nil, 1, File.join(Dir.pwd, "oom.pprof"))
      sleep 0.01 until (threads.call - before).empty?
      MemprofilerPprof::MemoryWatch.end
      puts "ended"
    RUBY
    expect(lines).to eq(["ended"])
  end

  # Ruby code and other threads run in the middle of a flush: what a panicked hook leaves behind must not be read.
  { "GC_END_MARK" => :auto, "FREEOBJ" => :freeobj }.each do |hook, liveness|
    it "ends a flush during which the hook #{hook} panics" do
      lines = printed_by(<<~RUBY)
        collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, liveness: :#{liveness}).start
        kept = Array.new(1000) { Object.new }
        faults.inject("flush: live samples") do
          faults.inject("#{hook}", :panic)
          kept.clear
          2.times { GC.start }
        end
        begin
          puts collector.flush.heap_samples_count
        rescue MemprofilerPprof::InternalError => e
          puts e.message[/panic in its .*;/]
        end
        puts MemprofilerPprof.collectors.size
      RUBY
      expect(lines).to eq(["panic in its #{hook};", "0"])
    end
  end

  it "is reported in a flusher's log" do
    lines = printed_by(<<~RUBY)
      logger = Struct.new(:lines) { %i[info warn error].each { |name| define_method(name) { |line| lines << line } } }.new([])
      collector = new_collector(sample_rate: 1.0).start
      faults.inject("flush: extract", :panic)
      MemprofilerPprof::BlockFlusher.new(collector, interval: 0.05, logger: logger, on_flush: proc {}).run do
        sleep 0.01 while logger.lines.empty?
      end
      puts logger.lines.first
    RUBY
    expect(lines.first).to match(/flushing failed: MemprofilerPprof::InternalError: .*a panic in its flush/)
  end
end
