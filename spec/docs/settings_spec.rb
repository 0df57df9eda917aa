# frozen_string_literal: true

RSpec.describe "docs/settings.md" do
  it "has every setting, in the environment, in Ruby and on the command line" do
    rows = Manual.rows("docs/settings.md", "In the environment").map { |row| row.map { |cell| cell.delete("`") } }
    expect(rows).to eq(MemprofilerPprof::Configuration.settings.map do |setting|
      [setting.name, setting.keyword.to_s, setting.option, setting.default, setting.purpose]
    end)
  end

  it "has the commands" do
    list = run_ruby('require "ruby_memprofiler_pprof/cli"; print MemprofilerPprof::CLI::COMMANDS.join(" ")').stdout
    expect(Manual.names("docs/settings.md", "Command line")).to eq(list.split.map(&:to_sym))
  end
end
