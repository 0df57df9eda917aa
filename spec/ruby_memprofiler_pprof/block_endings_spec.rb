# frozen_string_literal: true

require "timeout"

RSpec.describe MemprofilerPprof::BlockEndings do
  # The values of an expression in a child that is forked while another thread is in a block, and in its parent.
  def in_child_and_parent(expression, call, before: "")
    outcome = run_ruby(<<~RUBY)
      require "ruby_memprofiler_pprof/rack"

      def profile_request
        app = ->(_) { yield }
        env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/", "QUERY_STRING" => "memprofiler" }
        MemprofilerPprof::Rack::Middleware.new(app, authorize: ->(_) { true }).call(env)
      end

      #{before}
      entered = Queue.new
      Thread.new { #{call} { (entered << true) && sleep } }
      entered.pop
      Process.wait(fork { p(#{expression}) })
      p(#{expression})
    RUBY
    expect(outcome).to be_success, outcome.to_s
    outcome.stdout.split
  end

  it "ends a profile of CPU time" do
    expect(in_child_and_parent("MemprofilerPprof::CPU.running?", "MemprofilerPprof::CPU.profile")).to eq(%w[false true])
  end

  ["new_collector.profile", "MemprofilerPprof.profile", "profile_request"].each do |call|
    it "ends #{call}, whose collector is not kept alive" do
      expect(in_child_and_parent("MemprofilerPprof.collectors.size", call)).to eq(%w[0 1])
    end
  end

  it "does not end what the block has not begun" do
    before = <<~RUBY
      MemprofilerPprof::CPU.start
      MemprofilerPprof::CPU.singleton_class.prepend(Module.new { def start(**) = yield_to_fork || super })
      def (MemprofilerPprof::CPU).yield_to_fork = ($asked << true) && sleep
      $asked = Queue.new
      Thread.new { MemprofilerPprof::CPU.profile { nil } }
      $asked.pop
    RUBY
    expect(in_child_and_parent("MemprofilerPprof::CPU.running?", "1.times", before: before)).to eq(%w[true true])
  end

  # An exception from outside arrives when `start` has just returned.
  let(:late_exception) do
    Module.new { def start(**) = super.tap { Thread.current.raise(Timeout::Error, "late") } }
  end

  it "leaves no CPU time sampled if an exception from outside comes at the start" do
    allow(MemprofilerPprof::CPU).to receive(:start).and_wrap_original do |original|
      original.call
      Thread.current.raise(Timeout::Error, "late")
    end
    expect { MemprofilerPprof::CPU.profile { nil } }.to raise_error(Timeout::Error, "late")
    expect(MemprofilerPprof::CPU).not_to be_running
  end

  it "leaves no collector running either" do
    collector = new_collector.extend(late_exception)
    expect { collector.profile { nil } }.to raise_error(Timeout::Error, "late")
    expect(collector).not_to be_running
  end

  it "keeps no collector alive whose block has raised" do
    collector = new_collector
    expect { collector.profile { raise "no" } }.to raise_error("no")
    expect(MemprofilerPprof.collectors).not_to include(collector)
  end

  it "leaves no collector of a block running" do
    collector = MemprofilerPprof::Collector.new.extend(late_exception)
    allow(MemprofilerPprof::Collector).to receive(:new).and_return(collector)
    expect { MemprofilerPprof.profile { nil } }.to raise_error(Timeout::Error, "late")
    expect(MemprofilerPprof.collectors).not_to include(collector)
  end

  it "leaves no reader of a block open" do
    collector = new_collector
    collector.define_singleton_method(:add_reader) { super().tap { Thread.current.raise(Timeout::Error, "late") } }
    7.times { expect { collector.open_reader { nil } }.to raise_error(Timeout::Error, "late") }
    collector.singleton_class.remove_method(:add_reader)
    expect(collector.open_reader).not_to be_closed
  end

  it "hides no reason why nothing was begun", :aggregate_failures do
    collector = MemprofilerPprof::Collector.new
    collector.define_singleton_method(:start) { |**| raise MemprofilerPprof::RactorError, "the reason" }
    allow(MemprofilerPprof::Collector).to receive(:new).and_return(collector)
    [collector, MemprofilerPprof].each do |one|
      expect { one.profile { nil } }.to raise_error(MemprofilerPprof::RactorError, "the reason")
    end
  end

  it "ends nothing in a child that is forked in the block" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::CPU.profile { Process.wait(fork { p MemprofilerPprof::CPU.running? }) }
      MemprofilerPprof.profile { Process.wait(fork { p MemprofilerPprof.collectors.size }) }
    RUBY
    expect(outcome.stdout.split).to eq(%w[true 1]), outcome.to_s
  end
end
