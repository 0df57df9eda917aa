# frozen_string_literal: true

# With the frames that a flush names there are too many. They are released when it has ended, so that thinning again and
# again meanwhile would help nothing.
RSpec.describe MemprofilerPprof::Collector, "bounds", :faults do
  # How often the samples were thinned, how many there were, and the estimate, after a flush in which another thread
  # allocates when most frames have been named.
  def thinned
    printed_by(<<~RUBY).map { |line| Integer(line) }
      Marker = Class.new
      collector = new_collector(sample_rate: 1.0, max_stack_bytes: 1 << 20, max_heap_samples: 1_000_000, seed: 1).start
      modules = Array.new(1500) do |number|
        Module.new.tap { |holder| holder.module_eval("def self.run = Marker.new", "\#{number}.rb") }
      end
      # Each stack has two samples, far apart, so that the frames without names stay until both were visited.
      kept = Array.new(2) { modules.map(&:run) }.flatten
      named = 0
      count = lambda do
        faults.inject("line", &count)
        Thread.new { Object.new }.join if (named += 1) == 1400
      end
      count.call
      data = collector.flush
      faults.clear
      puts collector.stats[:halvings], kept.size
      puts data.profile.top(by: :class, type: :retained_objects).find { |site| site.name == "Marker" }.flat.value
    RUBY
  end

  it "thin the samples once, not to nothing, while a flush holds what it has named" do
    halvings, size, estimate = thinned
    expect(halvings).to be_between(1, 3)
    # Those not visited yet stand for two each.
    expect(estimate).to be_within(6 * 90).of(size)
  end
end
