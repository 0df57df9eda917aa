# frozen_string_literal: true

RSpec.describe "MemprofilerPprof::ByPid's loader", if: Attaching.possible? do
  include Attaching

  # Without the one that has RubyGems read its index, which ends by itself.
  threads = 'Thread.list.map { |thread| thread.name.to_s }.grep(/memprofiler/) - ["ruby_memprofiler_pprof index"]'

  it "lets the profiler's threads be killed where the program masks interrupts" do
    with_program("Thread.handle_interrupt(Object => :never) { sleep }") do |program|
      memprofiler!("attach", program.pid)
      expect(program.ask("MemprofilerPprof.stop; #{threads}")).to eq([])
    end
  end

  it "starts no thread in a group of the program's" do
    with_program("$group = ThreadGroup.new.add(Thread.current); sleep") do |program|
      memprofiler!("attach", program.pid)
      expect(program.ask("$group.list.size")).to eq(1)
    end
  end

  it "goes on in a group that no thread may leave" do
    with_program("ThreadGroup.new.add(Thread.current).enclose; sleep") do |program|
      memprofiler!("attach", program.pid)
      expect(program.ask("MemprofilerPprof.running?")).to be(true)
    end
  end

  it "goes on where the parent was when it forked" do
    code = <<~RUBY
      reached, forked = Queue.new, Queue.new
      trace = TracePoint.new(:end) do |point|
        next unless point.path.end_with?("/file_flusher.rb")
        trace.disable
        reached << true
        forked.pop
      end
      trace.enable
      reached.pop
      forked << $child = fork { sleep }
      sleep
    RUBY
    with_program(code) do |program|
      memprofiler!("attach", program.pid)
      child = program.ask("$child")
      memprofiler!("attach", child)
      # What is loaded only now.
      expect(memprofiler!("memory", child)).to include("\nAttached at 2")
      memprofiler!("detach", child)
    end
  end
end
