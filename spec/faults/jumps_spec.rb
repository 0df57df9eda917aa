# frozen_string_literal: true

# Ruby raises by a jump over the frames of C, and thus of Rust. A NoMemoryError may come from any call that allocates:
# whatever it interrupts must be undone, and the next attempt must succeed.
RSpec.describe "a NoMemoryError", :faults do
  # Prints the result of `code` when memory runs out at a place, whether this thread is sampled afterwards, and whether
  # everything works again.
  def lines(place, code)
    printed_by(<<~RUBY)
      KEPT = []
      Marker = Class.new
      def sampled? = new_collector(sample_rate: 1.0).profile { KEPT << Marker.new }.heap_samples_count.positive?
      collector = new_collector(sample_rate: 1.0).start
      KEPT.concat(Array.new(1000) { Object.new })
      data = collector.flush
      faults.inject("#{place}", :memory)
      2.times do
        begin
          #{code}
          puts "done"
        rescue NoMemoryError => e
          puts e.class
        end
      end
      puts sampled?
    RUBY
  end

  {
    "pprof_data" => "data.pprof_data",
    "profile data" => "collector.flush",
    "line" => "KEPT << Marker.new; collector.flush",
    "labels" => "MemprofilerPprof.with_labels(a: 1) { nil }",
    "without_profiling" => "MemprofilerPprof.without_profiling { nil }",
    "keeper" => "MemprofilerPprof::Collector.new.start",
    "hook" => "MemprofilerPprof::Collector.new.start"
  }.each do |place, code|
    it "at '#{place}' reaches the program, and leaves nobody muted and nothing locked" do
      expect(lines(place, code)).to eq(%w[NoMemoryError done true])
    end
  end

  it "loses no allocation that a flush was about to report" do
    counted = printed_by(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      Marker = Class.new
      1000.times { Marker.new }
      ["profile data", "line"].each do |place|
        faults.inject(place, :memory)
        begin
          collector.flush
        rescue NoMemoryError
          puts place
        end
      end
      puts collector.stop.flush.profile.tag(class: "Marker").total(:allocations).value
    RUBY
    expect(counted).to eq(["profile data", "line", "1000"])
  end

  it "lets windows that cannot go on leave nothing of their rate" do
    skip "windows need Ruby 3.3" if RUBY_VERSION < "3.3"
    rates = printed_by(<<~RUBY)
      collector = new_collector(sampling: :windows, max_sampling_time: 0.0001).start
      200_000.times { Object.new } until collector.stats[:effective_sample_rate] < 0.009
      collector.stop
      # The first hook is that of the start, the second that of windows.
      faults.inject("hook") { faults.inject("hook", :memory) }
      collector.start
      puts collector.stats.values_at(:sampling, :effective_sample_rate)
    RUBY
    expect(rates).to eq(%w[always 0.01])
  end

  it "leaves no collector half-started" do
    counts = printed_by(<<~RUBY)
      %w[keeper hook].each do |place|
        collector = new_collector
        faults.inject(place, :memory)
        begin
          collector.start
        rescue NoMemoryError
          puts MemprofilerPprof.collectors.size, collector.running?
        end
      end
    RUBY
    expect(counts).to eq(%w[0 false 0 false])
  end
end
