# frozen_string_literal: true

# At the end of the machine stack the VM raises from a signal handler, past whatever runs there. It checks the stack
# before calls, but Marshal.load calls nothing on its way down: it only allocates, and a hook goes deepest.
RSpec.describe "A C function that recurses until the machine stack overflows", :liveness, :threads do
  # No Ruby survives if the stack ends while the heap is collected or grows.
  let(:room) { GcHelpers::ROOM }

  let(:overflow) do
    <<~'RUBY'
      DEEP = "\x04\b" + "[\x06" * 100_000 + "0"
      # The stack ends at a different place each time.
      def overflow(callers)
        GC.start
        GC.disable
        callers.zero? ? Marshal.load(DEEP) : [callers - 1].each { |left| overflow(left) }
      rescue SystemStackError
        @raised = true
      ensure
        GC.enable
      end
    RUBY
  end

  it "does not stop a collector" do
    outcome = run_ruby(<<~RUBY, env: room)
      #{overflow}
      collector = new_collector(sample_rate: 1.0).start
      overflow(0)
      20.times { |callers| Thread.new { overflow(callers) }.join }
      GC.start
      collector.flush
      kept = Array.new(100) { Object.new }
      puts @raised, collector.flush.heap_samples_count >= kept.size, collector.stats[:contended]
    RUBY
    expect(outcome.stdout.lines(chomp: true)).to eq(%w[true true 0]), outcome.to_s
  end

  it "does not stop collectors that hardly ever sample" do
    outcome = run_ruby(<<~RUBY, env: room)
      #{overflow}
      collectors = Array.new(2) { new_collector(sample_rate: 0.0001).start }
      20.times { |callers| Thread.new { overflow(callers) }.join }
      puts @raised, collectors.map { |collector| collector.stats[:stack_ends].positive? }
    RUBY
    expect(outcome.stdout.lines(chomp: true)).to eq(%w[true true true]), outcome.to_s
  end

  # Near the end the hook is removed, so deaths are not reported. Before these counted as missed, it crashed.
  it "makes no collector count as alive what was swept meanwhile" do
    outcome = run_ruby(<<~'RUBY')
      Early = Class.new
      def load_deep(depth, wide = 0) = Marshal.load("\x04\b[\x07#{"[\x06" * depth}0[\x02#{[wide].pack("v")}#{"[\0" * wide}")
      collector = new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000, liveness: :freeobj).start
      Thread.new do
        depth = 1000.step(by: 8).find { |levels| load_deep(levels) && collector.stats[:stack_ends].positive? } + 32
        GC.start
        collector.flush
        Array.new(300_000) { Early.new }.clear
        GC.start(immediate_sweep: false)
        raise "the sweep is over" unless GC.latest_gc_info(:state) == :sweeping

        load_deep(depth, 60_000)
        GC.start
        puts collector.flush.heap_samples_count < 100_000
      end.join
    RUBY
    expect(outcome.stdout.lines(chomp: true)).to eq(%w[true]), outcome.to_s[0, 2000]
  end
end
