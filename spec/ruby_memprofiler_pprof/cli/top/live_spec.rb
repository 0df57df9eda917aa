# frozen_string_literal: true

RSpec.describe "What `memprofiler top` shows", :threads do
  # A terminal that closes as soon as a profile was requested, and a thread that ignores a kill, as finalizers do.
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
    print asked.pop.join(60) ? "ended" : "left behind"
  RUBY

  # What happens, each event after the one before was handled: a profile comes ("."), or none does ("!"), or a key is
  # pressed. Prints how often a profile was requested before each, and "~" for each short wait in between.
  let(:scripted) { <<~'RUBY' }
    %w[cli cli/top cli/source cli/top/live report].each { |name| require "ruby_memprofiler_pprof/#{name}" }
    Top = MemprofilerPprof::CLI::Top
    events = ARGV.first.chars
    answers = Queue.new
    keys = Queue.new
    wants = 0
    IO.singleton_class.prepend(Module.new { def select(*, timeout) = (print "~" if timeout) || super })
    Top::Live.prepend(Module.new { define_method(:want) { (wants += 1) && super() } })
    input, pressed = IO.pipe
    screen = Struct.new(:input, :size, :open, :close).new(input, [24, 80])
    screen.define_singleton_method(:draw) do |_|
      print wants
      event = events.shift || "q"
      ".!".include?(event) ? answers << event : (keys << event) && pressed.write(event)
    end
    screen.define_singleton_method(:keys) { keys.empty? ? [] : [keys.pop.tap { input.read(1) }] }
    view = Top::View.new("", by: :class, sort: :allocations, app: false) { |profile| profile }
    view.define_singleton_method(:lines) { |*| [] }
    view.define_singleton_method(:profile=) { |_| nil }
    Top::Live.new(screen, view, color: false) { raise MemprofilerPprof::CLI::Source::Unavailable if answers.pop == "!" }.run
  RUBY

  { "..x" => "1233", "p.xxp" => "111112", ".!" => "122~", ".p!xx" => "122222" }.each do |events, wants|
    it "requests the next profile when one has arrived, but not during a pause: #{events}" do
      expect(run_ruby(scripted, args: [events]).to_a).to match([wants, "", be_success])
    end
  end

  # A view that has a question at the first key; prints what it is told, and quits.
  let(:asking) { <<~'RUBY' }
    %w[cli cli/top cli/source cli/top/live report].each { |name| require "ruby_memprofiler_pprof/#{name}" }
    input, pressed = IO.pipe
    pressed.write(".")
    told = nil
    screen = Struct.new(:input, :size, :open, :close, :draw).new(input, [24, 80])
    screen.define_singleton_method(:draw) { |_| nil }
    screen.define_singleton_method(:keys) { told ? ["q"] : [*("w" if input.read_nonblock(1, exception: false) == ".")] }
    view = Struct.new(:profile) do
      def lines(*) = []
      def paused? = false
      def typing? = false
      def press(_) = @asked = { site: "a.rb:1" }
      def question = @asked.tap { @asked = nil }
    end.new
    view.define_singleton_method(:answer) { |question, answer| p [question, answer] if (told = true) }
    ask = ->(question) { ARGV.first == "fail" ? raise(MemprofilerPprof::CLI::Source::Unavailable, "no") : question.size }
    fetched = Queue.new
    MemprofilerPprof::CLI::Top::Live.new(screen, view, color: false, ask: ask) { fetched.pop }.run
    print Thread.list.size
  RUBY

  { "answer" => "[{:site=>\"a.rb:1\"}, 1]\n",
    "fail" => "[{:site=>\"a.rb:1\"}, #<MemprofilerPprof::CLI::Source::Unavailable: no>]\n" }.each do |how, printed|
    it "asks in the background, while no profile comes: #{how}" do
      outcome = run_ruby(asking, args: [how])
      expect(outcome.stdout.gsub(/site: "/, ':site=>"')).to start_with(printed), outcome.to_s
    end
  end

  it "leaves no thread behind, even if Ruby forgets to kill it" do
    expect(run_ruby(code).to_a).to match(["ended", "", be_success])
  end
end
