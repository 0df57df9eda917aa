# frozen_string_literal: true

# Whether a collector samples all the time or in windows.
RSpec.describe MemprofilerPprof::Collector, "sampling" do
  def choice(**options)
    MemprofilerPprof::Collector.new(**options).stats.values_at(:sampling, :sampling_reason)
  end

  # The same for a server after its first minute.
  def choice_in_services(**options)
    MemprofilerPprof::Collector.new(**options).send(:sampling_in_services)
  end

  let(:windows_possible) { Gem::Version.new(RUBY_VERSION) >= Gem::Version.new("3.3") }

  it "is always, if that is asked for" do
    expect([choice(sampling: :always), choice_in_services(sampling: :always)])
      .to all(eq([:always, "sampling is :always"]))
  end

  it "is always before Ruby 3.3, whatever is asked for" do
    skip "this Ruby can have windows" if windows_possible

    found = %i[auto windows].map { |asked| choice_in_services(sampling: asked) }
    expect(found).to all(eq([:always, "windows need Ruby 3.3 or later"]))
  end

  it "is in the comments of a profile, with its reason" do
    collector = new_collector.start
    sampling, reason = collector.stats.values_at(:sampling, :sampling_reason)
    expect(Pprof.decode(collector.flush).comments).to include("sampling=#{sampling}: #{reason}")
  end

  it "has no figures of windows before the first one" do
    expect(new_collector(sampling: :always).start.stats)
      .to include(windows: 0, window_frame: nil, window_toggle: nil, window_coverage: nil, late_windows: 0,
                  hook_cost_nsecs: nil)
  end

  describe "from Ruby 3.3 on" do
    before do
      skip "this Ruby cannot have windows" unless windows_possible
    end

    # What a process that announces itself says, such as "always: …".
    def choice_in_process(code)
      run_ruby("#{code}\nprint collector.stats.values_at(:sampling, :sampling_reason).join(': ')").stdout
    end

    it "is in windows, if that is asked for" do
      expect(choice(sampling: :windows)).to eq([:windows, "sampling is :windows"])
    end

    it "by default is in windows in servers and job runners" do
      expect(choice_in_services).to eq([:windows, "a server or job runner"])
    end

    it "has longer frames once a JIT is on, if windows wait for safe points" do
      skip "this Ruby has no YJIT" unless RubyVM.const_defined?(:YJIT)

      printed = run_ruby(<<~RUBY, options: %w[--disable-yjit]).stdout
        require "objspace"
        ObjectSpace.trace_object_allocations_start
        collector = MemprofilerPprof::Collector.new(sampling: :windows).start
        print collector.stats[:window_frame], " "
        RubyVM::YJIT.enable
        collector.flush
        print collector.stats[:window_frame]
      RUBY
      expect(printed).to eq("0.03 0.1")
    end

    it "has frames as long as without a JIT where windows need no safe points" do
      skip "this Ruby has no YJIT" unless RubyVM.const_defined?(:YJIT)
      skip "windows need safe points before Ruby 3.4" if RUBY_VERSION < "3.4"

      code = "print MemprofilerPprof::Collector.new(sampling: :windows).start.stats[:window_frame]"
      expect(run_ruby(code, options: %w[--yjit]).stdout).to eq("0.03")
    end

    it "keeps the frame that was asked for beside a JIT" do
      skip "this Ruby has no YJIT" unless RubyVM.const_defined?(:YJIT)

      code = "print MemprofilerPprof::Collector.new(sampling: :windows, window_frame: 0.03).start.stats[:window_frame]"
      expect(run_ruby(code, options: %w[--yjit]).stdout).to eq("0.03")
    end

    it "by default is always elsewhere" do
      code = "collector = MemprofilerPprof::Collector.new.start"
      expect(choice_in_process(code)).to eq("always: not known to be a server or job runner")
    end

    it "by default is always in the first minute" do
      code = "MemprofilerPprof::Service.announce; collector = MemprofilerPprof::Collector.new.start"
      expect(choice_in_process(code)).to eq("always: started less than a minute ago")
    end

    it "is always if only a thread or fiber is sampled" do
      collector = new_collector(sampling: :windows).start(only: :thread)
      expect(collector.stats).to include(sampling: :always, sampling_reason: "only one thread or fiber is sampled")
    end

    it "is always at rates above window_duty" do
      expect([choice(sampling: :windows, sample_rate: 0.031), choice(sampling: :windows, sample_rate: 0.03).first])
        .to eq([[:always, "sample_rate is above window_duty"], :windows])
    end

    it "changes with the rate while the collector runs" do
      collector = new_collector(sampling: :windows).start
      collector.sample_rate = 1.0
      expect(collector.stats[:sampling]).to eq(:always)
    end

    it "is always beside other Ractors" do
      code = <<~RUBY
        collector = MemprofilerPprof::Collector.new(sampling: :windows).start
        Ractor.new { 1 }
        Object.new until collector.stats[:sampling] == :always
      RUBY
      expect(choice_in_process(code)).to start_with("always: ")
    end
  end
end
