# frozen_string_literal: true

RSpec.describe "What `ruby_memprofiler_pprof top` shows" do
  # A terminal that is gone as soon as a profile was asked for, and a thread that forgets a kill, as finalizers do.
  let(:code) { <<~RUBY }
    %w[cli cli/top cli/top/live report].each { |name| require "ruby_memprofiler_pprof/\#{name}" }
    class Screen < Struct.new(:input, :asked)
      def open = nil
      def close = nil
      def draw(_lines) = nil
      def size = [24, 80]
      def keys = asked.empty? ? [] : nil
    end
    class View
      attr_writer :profile
      def lines(*) = []
      def paused? = false
    end
    reader, writer = IO.pipe
    writer.write(".")
    asked = Queue.new
    live = MemprofilerPprof::CLI::Top::Live.new(Screen.new(reader, asked), View.new, color: false) do
      asked << Thread.current
      loop do
        sleep
      ensure
        break
      end
    end
    live.run
    print asked.pop.join(10) ? "ended" : "left behind"
  RUBY

  it "leaves no thread behind, even if Ruby forgets to kill it" do
    expect(run_ruby(code).to_a).to match(["ended", "", be_success])
  end
end
