# frozen_string_literal: true

# A hook that does something forbidden ends the process; a complete run of the profiler does not.
RSpec.describe "a hook", :faults do
  # Allocates, with a hook that does something forbidden.
  def code(hook, deed)
    <<~RUBY
      faults.arm_traps
      collector = new_collector(sample_rate: 1.0, liveness: :#{hook == "FREEOBJ" ? "freeobj" : "auto"}).start
      faults.inject("#{hook}", :#{deed})
      100.times { Object.new }
      GC.start
      puts "not trapped"
    RUBY
  end

  { allocate: "allocated 1 objects", interrupts: "let the VM run other code",
    lock: "waited for the lock of the collectors", panic: "panicked" }.each do |deed, report|
    it "is trapped when it does something forbidden: #{deed}" do
      outcome = run_faulty(code("NEWOBJ", deed))
      expect([outcome.stderr, outcome.status.termsig]).to match([/trap: the hook NEWOBJ #{report}/, 6])
    end
  end

  %w[GC_END_MARK FREEOBJ].each do |hook|
    it "is trapped when it waits for a lock in #{hook}" do
      expect(run_faulty(code(hook, :lock)).stderr).to include("trap: the hook #{hook} waited for the lock")
    end

    it "is trapped when it panics in #{hook}" do
      expect(run_faulty(code(hook, :panic)).stderr).to match(/trap: the hook #{hook} panicked/)
    end
  end

  %i[mark_bits freeobj].each do |liveness|
    it "does nothing forbidden during a complete run, with #{liveness}" do
      hooks, postponed = printed_by(<<~RUBY)
        faults.arm_traps
        collector = MemprofilerPprof::Collector.new(sample_rate: 0.5, liveness: :#{liveness}, max_heap_samples: 3000)
        collector.start
        kept = []
        threads = Array.new(4) do |number|
          Thread.new do
            MemprofilerPprof.with_labels(number: number) do
              20.times do |round|
                MemprofilerPprof.enter_span("trace" * 3 + round.chr, [number].pack("Q"))
                kept << Array.new(200) { [Object.new, "string" * 10, { round => number }] }
                kept.shift if kept.size > 20
                eval("def self.method_\#{round} = [1].each { Object.new }; method_\#{round}")
                Thread.pass
              end
            end
          end
        end
        10.times do
          collector.flush
          GC.start
          GC.compact if GC.respond_to?(:compact)
        end
        threads.each(&:join)
        collector.flush(gc: true, yield_gvl: false)
        collector.stop
        raise "no samples" unless collector.flush.heap_samples_count > 0
        puts faults.trap_counts
      RUBY
      expect([hooks.to_i, postponed.to_i]).to match([be > 1000, be > 10])
    end
  end
end
