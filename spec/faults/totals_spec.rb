# frozen_string_literal: true

RSpec.describe "the totals of a profile", :faults do
  it "are not below what it has seen, although garbage is collected in the middle of the flush" do
    seen, slots = printed_by(<<~'RUBY').map(&:to_i)
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, seed: 1).start
      kept = Array.new(50_000) { Object.new }
      slices = 0
      collect = lambda do
        next faults.inject("flush: live samples", &collect) if (slices += 1) < 400

        kept.clear
        GC.start
      end
      faults.inject("flush: live samples", &collect)
      profile = collector.flush(max_hold: 1e-6).profile
      puts profile.total(:retained_objects).value, profile.comments.join("\n")[/heap_live_slots=(\d+)/, 1]
    RUBY
    expect(seen).to be_between(20_000, slots)
  end
end
