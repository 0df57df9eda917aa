# frozen_string_literal: true

RSpec.describe "docs/settings.md" do
  def rows(heading)
    Manual.rows("docs/settings.md", heading).map { |row| row.map { |cell| cell.delete("`") } }
  end

  it "lists every setting, in the environment, in Ruby and on the command line" do
    settings = MemprofilerPprof::Configuration.settings.select(&:option).map do |setting|
      [setting.name, setting.keyword.to_s, setting.option, setting.default, setting.purpose]
    end
    expect(rows("Most used") + rows("Destinations") + rows("CPU time") + rows("Advanced")).to match_array(settings)
  end

  it "has the keys of file names" do
    keys = rows("File names").filter_map { |key,| key[/\A%\{(\w+)\}\z/, 1]&.to_sym }
    expect(keys).to match_array(MemprofilerPprof::FilePattern::KEYS)
  end

  it "has the commands" do
    list = run_ruby('require "ruby_memprofiler_pprof/cli"; print MemprofilerPprof::CLI::COMMANDS.join(" ")').stdout
    expect(Manual.names("docs/settings.md", "Command line")).to eq(list.split.map(&:to_sym))
  end
end
