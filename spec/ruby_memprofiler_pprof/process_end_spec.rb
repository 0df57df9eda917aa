# frozen_string_literal: true

# What Ruby code can still do after the VM has removed all hooks, and before it frees collectors.
RSpec.describe MemprofilerPprof::Collector, "at the process's end" do
  # The VM ends other threads last. Ruby 3.3 tells hooks of what it frees after that, collectors included.
  it "is not used any more once it was freed, even if a thread's last act was to start it" do
    outcome = run_ruby(<<~RUBY)
      first, last = Array.new(2) do
        MemprofilerPprof::Collector.new(sample_rate: 1.0, liveness: :freeobj, max_heap_samples: 100_000)
      end
      first.start
      kept = Array.new(50_000) { Object.new }
      freed_last = Array.new(30_000) { Enumerator.new { nil } }
      thread = Thread.new do
        sleep
      ensure
        first.stop
        last.start
        kept = Array.new(100_000) { "a" * 30 }
        freed_last = Array.new(30_000) { Enumerator.new { nil } }
        puts "started"
      end
      Thread.pass until thread.status == "sleep"
    RUBY
    expect(outcome).to be_success, outcome.to_s
    expect(outcome.stdout).to eq("started\n")
  end
end
