# frozen_string_literal: true

# A fork while another thread flushes: parent and child continue, and both can flush.
RSpec.describe "a fork in a flush", :faults do
  # The output of parent and child: the samples of the flush during which the fork happened, the child's, and the next
  # ones.
  def lines(_place, fault)
    printed_by(<<~RUBY)
      collector = new_collector(sample_rate: 1.0, max_heap_samples: 100_000)
      kept = []
      collector.start
      2000.times { kept << Object.new }
      2000.times { Object.new }
      forking = lambda do
        pid = fork do
          counts = Array.new(2) { collector.flush(gc: true).heap_samples_count }
          kept.concat(Array.new(100) { Object.new })
          puts "child \#{counts.all? { |count| count >= 2000 }} \#{collector.flush.allocation_samples_count >= 100}"
          $stdout.flush
          exit!(0)
        end
        puts "status \#{Process.wait2(pid).last.exitstatus}"
      end
      #{fault}
      collector.flush(max_hold: 0.000001)
      puts "parent \#{collector.stop.flush.heap_samples_count >= 2000}"
    RUBY
  end

  ["allocations", "live samples", "extract", "commit"].each do |phase|
    it "is survived by both in the phase '#{phase}'" do
      expect(lines(phase, %(faults.inject("flush: #{phase}") { Thread.new(&forking).join })))
        .to contain_exactly("child true true", "status 0", "parent true")
    end
  end

  it "is survived by both while a profile is encoded without the GVL" do
    expect(lines("encode", <<~RUBY)).to contain_exactly("child true true", "status 0", "parent true")
      faults.inject("flush: encode", :sleep)
      forker = Thread.new { sleep 0.1; forking.call }
      at_exit { forker.join }
    RUBY
  end

  it "is survived by sampling in windows, which a child without a thread for the timer gives up" do
    skip "windows need Ruby 3.3" if RUBY_VERSION < "3.3"
    expect(printed_by(<<~RUBY)).to eq(["always there is no thread for a timer, or the process ends", "true", "windows"])
      collector = new_collector(sampling: :windows, window_frame: 0.002, window_duty: 0.25, sample_rate: 0.2).start
      Object.new until collector.stats[:windows] > 2
      $stdout.sync = true
      faults.inject("timer of windows", :deny)
      child = fork do
        puts collector.stats.values_at(:sampling, :sampling_reason).join(" ")
        1000.times { Object.new }
        puts collector.flush.allocation_samples_count.positive?
      end
      Process.wait(child)
      puts collector.stats[:sampling]
    RUBY
  end

  # Nobody is left in the child to release what the flush held.
  ["line", "flush: live samples", "flush: extract"].each do |place|
    it "releases in the child what a flush held at '#{place}'" do
      parent, child = printed_by(<<~RUBY).sort.map { |line| line.split.last.to_i }.reverse
        collector = new_collector(sample_rate: 1.0)
        kept = []
        collector.start
        1000.times { |n| kept << eval("def self.m\#{n} = Object.new; m\#{n}") }
        1000.times { |n| eval("def self.d\#{n} = Object.new; d\#{n}") }
        left = lambda do |process|
          kept.clear
          3.times { collector.flush(gc: true) }
          collector.flush
          puts "\#{process} \#{collector.stats[:stack_nodes]}"
          $stdout.flush
        end
        faults.inject("#{place}") do
          Thread.new { Process.wait(fork { left.call("child"); exit!(0) }) }.join
        end
        collector.flush(max_hold: 0.000001)
        left.call("parent")
      RUBY
      expect(child).to be < parent + 100
    end
  end

  it "continues the flush in the child if the flushing thread forked, in a signal handler" do
    lines = printed_by(<<~RUBY)
      Marker = Class.new
      def marked(depth) = depth.zero? ? Marker.new : marked(depth - 1)
      collector = new_collector(sample_rate: 1.0).start
      kept = []
      500.times { |depth| marked(depth) }
      3.times { GC.start }
      pid = nil
      # What the child stores may reuse the slots of what it released.
      store = -> { 2000.times { |n| kept << eval("def self.m\#{n} = Object.new; m\#{n}") } }
      trap(:USR1) { (pid = fork) || Thread.new(&store).join }
      faults.inject("flush: extract") { Process.kill(:USR1, Process.pid) }
      profile = collector.flush(max_hold: 0.000001).profile.tag(class: "Marker")
      puts profile.total(:allocations).value, profile.focus(/marked/).total(:allocations).value
      $stdout.flush
      pid ? Process.wait(pid) : exit!(0)
    RUBY
    expect(lines).to eq(%w[500 500 500 500])
  end
end
