# frozen_string_literal: true

RSpec.describe "docs/reading-a-profile.md" do
  it "labels" do
    code = Manual.ruby("docs/reading-a-profile.md").first
    outcome = run_ruby("def render = print(MemprofilerPprof.labels.to_a.inspect)\n#{code}")
    expect(outcome.stdout).to eq('[[:endpoint, "users#show"], [:tenant, "7"]]'), outcome.to_s
  end
end
