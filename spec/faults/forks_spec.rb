# frozen_string_literal: true

# A fork while another thread flushes: parent and child go on, and both can flush.
RSpec.describe "a fork in a flush", :faults do
  # What parent and child print: the samples of the flush that was forked in, the child's, and the next ones.
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
end
