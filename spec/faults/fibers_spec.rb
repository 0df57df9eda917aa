# frozen_string_literal: true

# A fiber that waits may never be resumed: what it has on its machine stack is never undone.
RSpec.describe "fibers that a scheduler abandons while they wait to flush", :faults do
  it "do not prevent others from being muted" do
    lines = printed_by(<<~RUBY)
      class Forgetful
        def block(*) = Fiber.yield
        def unblock(*) = nil
        def kernel_sleep(*) = nil
        def io_wait(*) = nil
        def close = nil
        def fiber(&) = Fiber.new(blocking: false, &).tap(&:resume)
      end
      collector = new_collector(sample_rate: 1.0).start
      begun, flushed = Queue.new, Queue.new
      fibers = []
      faults.inject("flush: live samples") do
        Thread.new do
          Fiber.set_scheduler(Forgetful.new)
          100.times { fibers << Fiber.schedule { collector.flush } }
          begun << true
          flushed.pop
        end
        begun.pop
      end
      collector.flush
      puts fibers.count(&:alive?)
      kept = []
      muting = -> { MemprofilerPprof.without_profiling { kept.concat(Array.new(1000) { Object.new }) } }
      # One slot is free, the flush's: this takes two.
      twice = -> { MemprofilerPprof.without_profiling { Thread.new(&muting).join } }
      puts new_collector(sample_rate: 1.0).profile(&twice).heap_samples_count < 500
      $stdout.flush
      exit!(0)
    RUBY
    expect(lines).to eq(%w[100 true])
  end
end
