# frozen_string_literal: true

RSpec.describe "What the command line shows while it reads" do
  # Reads as many files as there are arguments, each of which takes as many seconds as it says.
  let(:code) { <<~'RUBY' }
    %w[cli cli/progress].each { |name| require "ruby_memprofiler_pprof/#{name}" }
    require "stringio"
    terminal = StringIO.new
    kind, *seconds = ARGV
    terminal.define_singleton_method(:tty?) { kind == "terminal" }
    now = 100.0
    files = Enumerator.new do |files|
      seconds.map(&:to_f).each { |each| files << (each.negative? ? raise("broken") : (now += each)) }
    end
    progress = MemprofilerPprof::CLI::Progress.new(files, seconds.size, out: terminal, clock: -> { now })
    begin
      raise "lost some" unless progress.to_a.size == seconds.size
    rescue RuntimeError => e
      print e.message
    end
    print terminal.string
  RUBY

  def shown(*arguments)
    outcome = run_ruby(code, args: arguments.map(&:to_s))
    expect(outcome).to be_success, outcome.to_s
    outcome.stdout
  end

  it "is nothing for a second" do
    expect(shown("terminal", 0.5, 0.5)).to eq("")
  end

  it "is one line from then on, which is gone in the end" do
    expect(shown("terminal", 0.5, 0.6, 0)).to eq("\rRead 2 of 3 profiles\rRead 3 of 3 profiles\r                    \r")
  end

  it "is gone after an error, too" do
    expect(shown("terminal", 2, -1)).to eq("broken\rRead 1 of 2 profiles\r                    \r")
  end

  it "is nothing where there is no terminal" do
    expect(shown("file", 2, 2)).to eq("")
  end
end
