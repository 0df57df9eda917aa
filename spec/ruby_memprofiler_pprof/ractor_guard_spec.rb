# frozen_string_literal: true

# Whether or not this Ruby has the bug, creating a Ractor must be safe.
RSpec.describe "A Ractor created while a collector runs" do
  affected = [%w[3.1.0 3.1.3], %w[3.2.0 3.2.2]].any? do |first, last|
    (Gem::Version.new(first)..Gem::Version.new(last)).cover?(Gem::Version.new(RUBY_VERSION))
  end

  let(:create) do
    run_ruby(<<~RUBY, options: ["-W:no-experimental"])
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0).start
      kept = Array.new(100) { Object.new }
      ractor = Ractor.new { Array.new(100) { Object.new }.size }
      # Ruby 4.0 has no Ractor#take.
      value = ractor.respond_to?(:value) ? ractor.value : ractor.take
      print [value, collector.running?, collector.stats[:disarmed].nil?, collector.flush.heap_samples_count > 100]
    RUBY
  end

  it "does not crash the process, and what was collected is kept" do
    expect(create).to be_success
    expect(create.stdout).to start_with("[100, ").and end_with(", true]")
  end

  it "stops the collector where the VM would crash, and says so", if: affected do
    expect(create.stdout).to include("false, false")
    expect(create.stderr).to include("stopped profiling")
  end

  it "lets the collector run elsewhere", unless: affected do
    expect(create.stdout).to include("true, true")
  end

  it "keeps collectors from starting while another Ractor runs where that Ractor could crash the VM", if: affected do
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental"])
      ractor = Ractor.new { Ractor.receive }
      begin
        MemprofilerPprof::Collector.new.start
      rescue MemprofilerPprof::RactorError => e
        print e.message
      end
      ractor.send(nil)
    RUBY
    expect(outcome).to be_success
    expect(outcome.stdout).to include("another Ractor")
  end
end
