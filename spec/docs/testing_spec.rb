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
    skip "the gem minitest cannot be loaded" unless run_ruby("require 'minitest'").success?

    expect(run_minitest(session + example("Minitest")).stdout)
      .to include("2 runs, 3 assertions, 0 failures, 0 errors")
  end

  it "has the default pattern" do
    expect(Manual.text("docs/testing.md"))
      .to include("profile_pattern = #{MemprofilerPprof::Testing::DEFAULT_PROFILE_PATTERN.inspect}\n")
  end
end
