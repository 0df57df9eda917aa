# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"
require "tmpdir"

RSpec.describe "The README" do
  include_context "with the testing engine"

  let(:text) { Manual.text("README.md") }

  it "is short" do
    expect(text.lines.size).to be <= 250
    expect(text.bytesize).to be <= 12_000
  end

  it "begins with the output of leaks" do
    printed, walkthrough = %w[README.md docs/finding-a-leak.md].map do |page|
      # The rightmost columns are left out where space is short.
      table = Manual.text(page)[/^VERDICT.*\n.*/].lines
      [table.first.split.first(5), table.last.split.values_at(0, 1, -1)]
    end
    expect(printed).to eq(walkthrough)
  end

  it "shows commands that build and test the gem" do
    commands = Manual.section("README.md", "Build and test").scan(%r{^    (script/\w+)}).flatten
    expect(commands).to eq(%w[script/demo script/test])
    expect(commands.select { |command| File.executable?(File.join(Manual::ROOT, command)) }).to eq(commands)
  end

  it "profiles a piece of code" do
    code = Manual.ruby("README.md", "Use it")[1]
    Dir.mktmpdir do |directory|
      outcome = run_ruby("def work = $kept = Object.new\n#{code}", chdir: directory, gems: true)
      expect(outcome).to be_success, outcome.to_s
      profile = MemprofilerPprof::Profile.load("#{directory}/work.pprof")
      expect(profile.samples.flat_map { |sample| sample.stack.map(&:name) }).to include("Object#work")
    end
  end

  it "has an expectation that works" do
    expectation = Manual.ruby("README.md", "Use it")[2]
    session = "Session = Struct.new(:name) { def close = nil }"
    expect(run_rspec("#{session}\nRSpec.describe(Session) { it { #{expectation} } }").stdout)
      .to include("1 example, 0 failures")
  end

  describe "on Rails", :rails do
    it "sets the profiler up" do
      configure("")
      File.write("#{app}/config/initializers/memprofiler_pprof.rb", Manual.ruby("README.md", "Use it").first)
      outcome = in_app("print [MemprofilerPprof.config.interval, MemprofilerPprof.running?].inspect")
      expect(outcome.stdout).to include("[300, true]"), outcome.to_s
    end
  end
end
