# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Collector, "#flush" do
  # Prints how many more bytes are resident at most during a first flush of that many samples, each with a stack of its
  # own that has some twenty frames, and how many afterwards.
  def memory_of_flush(samples)
    outcome = run_ruby(<<~RUBY)
      METHODS = Array.new(64) { |number| :"method_\#{number}" }
      METHODS.each do |name|
        eval <<~METHOD
          def \#{name}(path, at = 1) = at == path.size ? Object.new : __send__(path[at], path, at + 1)
        METHOD
      end
      def resident(line) = File.read("/proc/self/status")[/^\#{line}:\\s*(\\d+)/, 1].to_i * 1024

      collector = new_collector(sample_rate: 1.0, sampling: :always).start
      random = Random.new(1)
      KEPT = Array.new(#{samples}) { path = METHODS.sample(20, random: random); __send__(path[0], path) }
      3.times { GC.start }
      before = resident("VmRSS")
      File.write("/proc/self/clear_refs", "5")
      collector.flush
      most = resident("VmHWM") - before
      3.times { GC.start }
      puts [most, resident("VmRSS") - before].join(" ")
    RUBY
    expect(outcome).to be_success
    outcome.stdout.split.map(&:to_i)
  end

  before { skip "needs /proc/self/clear_refs" unless File.writable?("/proc/self/clear_refs") }

  it "takes little memory, and leaves little behind, however many stacks there are" do
    most, afterwards = memory_of_flush(10_000)
    expect(most).to be < 9_000_000
    expect(afterwards).to be < 5_000_000
  end
end
