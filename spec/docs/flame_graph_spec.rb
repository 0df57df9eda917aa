# frozen_string_literal: true

require "tmpdir"

RSpec.describe "docs/flame-graph.md" do
  it "draws what grew" do
    kept = []
    Dir.mktmpdir do |directory|
      %w[old new].each do |name|
        profile = new_collector(sample_rate: 1.0).profile { 1000.times { kept << Object.new } }
        profile.write("#{directory}/#{name}.pprof")
      end
      outcome = run_ruby(Manual.ruby("docs/flame-graph.md").first, chdir: directory, gems: true)
      expect(outcome).to be_success, outcome.to_s
      expect(File.read("#{directory}/growth.html")).to include("<title>Growth").and include(File.basename(__FILE__))
    end
  end
end
