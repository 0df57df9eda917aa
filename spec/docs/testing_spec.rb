# frozen_string_literal: true

require "ruby_memprofiler_pprof/testing"

RSpec.describe "docs/testing.md" do
  include_context "with the testing engine"

  let(:session) do
    <<~RUBY
      class Session
        def self.parse(text) = new(text.split("=").last).close
        def initialize(name) = @name = name.dup
        def close = nil
      end
    RUBY
  end

  # The first example of a section, without its first line.
  def example(heading)
    Manual.ruby("docs/testing.md", heading).first.sub(/\Arequire .*\n/, "")
  end

  it "has an example for RSpec that works" do
    expect(run_rspec(session + example("RSpec")).stdout).to include("3 examples, 0 failures")
  end

  it "has an example for Minitest that works" do
    skip "the gem minitest cannot be loaded" unless run_ruby("require 'minitest'", gems: true).success?

    expect(run_minitest(session + example("Minitest")).stdout)
      .to include("2 runs, 3 assertions, 0 failures, 0 errors")
  end

  it "has the numbers of calls" do
    table = Manual.rows("docs/testing.md", "What is a leak").first(5).map { |row| row.last(2) }
    expect(table).to eq(MemprofilerPprof::Testing::Cost.const_get(:STEPS).map do |step|
      # The first five batches, followed by batches twice as long as the one before.
      all = step.first_calls + (step.first_calls / 5 * ((2**(step.longer_batches + 1)) - 2))
      [step.first_calls, all].map { |calls| calls.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",") }
    end)
  end

  it "has the default pattern" do
    expect(Manual.text("docs/testing.md"))
      .to include("profile_pattern = #{MemprofilerPprof::Testing::DEFAULT_PROFILE_PATTERN.inspect}\n")
  end
end
