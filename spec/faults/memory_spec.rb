# frozen_string_literal: true

# An extension that gets no large blocks of memory: it keeps fewer samples, and says so.
RSpec.describe "a collector without memory for its tables to grow", :faults do
  def code(limit, liveness, body)
    <<~RUBY
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, liveness: :#{liveness}, seed: 1).start
      kept = []
      faults.allocation_limit = #{limit}
      #{body}
      faults.allocation_limit = nil
      stats = collector.stats
      profile = MemprofilerPprof::Profile.load(collector.stop.flush.pprof_data)
      puts stats[:allocation_failures], stats[:live_samples], profile.total(:retained_objects).value
      puts profile.comments.grep(/allocation_failures/)
    RUBY
  end

  %i[mark_bits freeobj].each do |liveness|
    it "thins its samples, without bias, with #{liveness}" do
      failures, samples, objects, comment = printed_by(code(65_536, liveness, "100_000.times { kept << Object.new }"))
      expect([failures.to_i, samples.to_i, objects.to_i, comment])
        .to match([be_positive, be < 10_000, be_within(10_000).of(100_000), /ran short of memory/])
    end
  end

  it "drops stacks" do
    failures, _, _, _, overflows = printed_by(code(131_072, :mark_bits, <<~RUBY))
      faults.allocation_limit = nil
      2100.times { |n| eval("def m\#{n}(kept, depth) = depth.zero? ? kept << Object.new : m\#{n + 1}(kept, depth - 1)") }
      collector.stop.flush
      collector.start
      faults.allocation_limit = 131_072
      200.times { |n| __send__("m\#{n * 10}", kept, 50) }
      at_exit { puts collector.stats[:stack_overflows] }
    RUBY
    expect([failures.to_i, overflows.to_i]).to match([be_positive, be_positive])
  end

  it "counts what dies if there is next to no memory" do
    _, _, objects, = printed_by(code(16_384, :mark_bits, "1_000.times { Object.new }\nGC.start"))
    expect(objects.to_i).to be < 500
  end

  it "keeps few samples if there is next to no memory, and the program goes on" do
    failures, samples, = printed_by(code(16_384, :mark_bits, "10_000.times { kept << Object.new }"))
    expect([failures.to_i, samples.to_i]).to match([be_positive, be_between(1, 1000)])
  end

  it "takes no profile without memory for one, and loses nothing" do
    output = printed_by(<<~RUBY)
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, seed: 1).start
      kept = Array.new(1000) { Object.new }
      faults.inject("reserve", :deny)
      begin
        collector.flush
      rescue MemprofilerPprof::Error => error
        puts error.message
      end
      faults.clear
      puts collector.flush.profile.total(:allocations).value
    RUBY
    expect(output).to match([/no memory for a profile/, a_string_matching(/\A1\d\d\d\z/)])
  end

  it "takes no sample when memory runs out, and says so" do
    output = printed_by(<<~RUBY)
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, seed: 1).start
      faults.inject("reserve", :deny)
      kept = Array.new(1000) { Object.new }
      faults.clear
      puts collector.stats[:allocation_failures], collector.stats[:live_samples]
    RUBY
    expect(output.map(&:to_i)).to match([be >= 1000, be < 500])
  end
end
