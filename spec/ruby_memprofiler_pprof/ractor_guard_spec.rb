# frozen_string_literal: true

# Whether or not this Ruby has one of the bugs, creating a Ractor must be safe.
RSpec.describe "A Ractor created while a collector runs", :liveness, :threads do
  affected = [%w[3.1.0 3.1.3], %w[3.2.0 3.2.2], %w[3.4.0 3.4.99]].any? do |first, last|
    (Gem::Version.new(first)..Gem::Version.new(last)).cover?(Gem::Version.new(RUBY_VERSION))
  end

  # There, a collector can have no hook at all, and creating the first Ractor collects garbage.
  blind = affected && RUBY_VERSION < "3.3"
  reader = File.expand_path("../support/pprof", __dir__)

  # Not under SPEC_GC: the collector loses track of what moves after it has stopped, which stats[:missed_collections]
  # reports.
  let(:create) do
    run_ruby(<<~RUBY, options: ["-W:no-experimental", "-r#{reader}"], env: { "SPEC_GC" => nil })
      Early = Class.new
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0).start
      kept = Array.new(100) { Early.new }
      ractor = Ractor.new { Array.new(100) { Object.new }.size }
      # Ruby 4.0 has no Ractor#take.
      value = ractor.respond_to?(:value) ? ractor.value : ractor.take
      profile = Pprof.decode(collector.flush)
      counts = %i[allocations retained_objects].map { |type| profile.by_class(type).fetch("Early", 0) }
      print [value, collector.running?, collector.stats[:disarmed].nil?, *counts, collector.stats[:missed_collections]]
    RUBY
  end

  it "does not crash the process" do
    expect(create).to be_success
    expect(create.stdout).to start_with("[100, ")
  end

  it "loses neither allocations nor live objects", unless: blind do
    expect(create.stdout).to end_with(", 100, 100, 0]")
  end

  it "loses live objects, which the collector reports, but not allocations", if: blind do
    expect(create.stdout).to match(/, 100, 0, [1-9]\d*\]\z/)
  end

  it "stops the collector where the VM would crash, and says so", if: affected do
    expect(create.stdout).to include("false, false")
    expect(create.stderr).to include("stopped profiling")
  end

  it "is seen from its beginning, although the collector was in windows", if: RUBY_VERSION >= "4.0" do
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental"])
      collector = MemprofilerPprof::Collector.new(sampling: :windows, sample_rate: 0.03).start
      Ractor.new { 100_000.times { Object.new } }.value
      puts collector.stats[:sampling], collector.flush.profile.total(:allocations).value
    RUBY
    sampling, allocations = outcome.stdout.split
    expect(sampling).to eq("always"), outcome.to_s
    expect(allocations.to_i).to be_within(12_000).of(100_000)
  end

  it "has its name, its arguments and the line that creates it" do
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental"])
      ractor = Ractor.new(1, name: "one") { |number| number + 1 }
      p ractor
      puts ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
    # Where collectors are stopped before it begins, that is Ruby code, and its line the one that Ruby shows.
    line = "-e:1 " unless affected || RUBY_VERSION < "3.3"
    expect(outcome.stdout).to match(/\A#<Ractor:#2 one .*#{line}\w+>\n2\n\z/), outcome.to_s
  end

  it "lets the collector run on other Rubies", unless: affected do
    expect(create.stdout).to include("true, true")
  end

  # On Ruby 3.1.2 hooks for the garbage collector's events alone are enough to crash the VM.
  { "running" => "", "stopped" => ".stop" }.each do |state, stop|
    it "may collect garbage before it has a frame, beside a #{state} collector" do
      outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental"])
        collector = MemprofilerPprof::Collector.new(sample_rate: 1.0).start#{stop}
        GC.stress = true
        ractor = Ractor.new { 1 }
        ractor.respond_to?(:value) ? ractor.value : ractor.take
        GC.stress = false
        collector.flush
      RUBY
      expect(outcome).to be_success, outcome.to_s[0, 2000]
    end
  end

  it "lets a collector that it stopped start again", if: affected do
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental", "-r#{reader}"])
      Late = Class.new
      collector = MemprofilerPprof::Collector.new(sample_rate: 1.0).start
      early = Array.new(100) { Object.new }
      # Not on this machine stack, where remains would keep the Ractor object alive: all hooks are disabled when it
      # dies.
      Thread.new { Ractor.new { 1 }.take }.join
      sleep 0.01 while Ractor.count > 1
      3.times { GC.start }
      collector.start
      kept = Array.new(100) { Late.new }
      GC.start
      print Pprof.decode(collector.flush).by_class(:retained_objects).fetch("Late", 0)
    RUBY
    expect(outcome.stdout).to eq("100"), outcome.to_s[0, 2000]
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

  # On Ruby 3.4 this crashed within a second.
  it "may collect garbage while the main one creates modules", :slow do
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental"])
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      MemprofilerPprof::Collector.new(sample_rate: 1.0).start
      finish = now + 3
      ractors = Array.new(2) { Ractor.new(finish) { |time| (Array.new(200) { "x" * 100 } && GC.start) while now < time } }
      Module.new while now < finish
      ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    RUBY
    expect(outcome).to be_success, outcome.to_s[0, 2000]
  end
end
