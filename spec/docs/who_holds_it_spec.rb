# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/report"
require "ruby_memprofiler_pprof/retainers"

RSpec.describe "docs/who-holds-it.md" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:page) { "docs/who-holds-it.md" }
  let(:section) { MemprofilerPprof::Report::Retainers.new(RecordedRetainers.retainers).to_h }

  def names(cell)
    cell.scan(/`(\w+)`/).flatten.map(&:to_sym)
  end

  # The members that the page has for sections, findings, holders or links.
  def members(owner)
    Manual.rows(page, "JSON").flat_map { |cells| cells[1] == owner ? names(cells[0]) : [] }
  end

  it "has code that works" do
    code, = Manual.ruby(page, "In Ruby")
    outcome = run_ruby(<<~RUBY, chdir: Dir.pwd)
      require "#{File.expand_path("../support/retainers", __dir__)}"
      MemprofilerPprof.start
      RecordedRetainers.answer_of(MemprofilerPprof.collector)
      #{code}
    RUBY
    expect([outcome.stderr, outcome.stdout.lines.first])
      .to eq(["", "#{RecordedRetainers::SITE}: 100 % ProductCardCache.@cards → Hash (6,724)\n"])
    expect(File.binread("holders.pprof")).to eq(RecordedRetainers.pprof)
  end

  it "has the members of the JSON" do
    finding = section[:findings].first
    holder = finding[:holders].first
    expect(members("sections")).to match_array(section.keys | [:input])
    expect(members("findings")).to match_array(finding.keys)
    expect(members("holders") + members("links")).to match_array(holder.keys + holder[:chain].first.keys)
  end

  it "has the words for references" do
    words = MemprofilerPprof::Retainers.const_get(:Reference)
    edges = { instance_variable: "@cards", class_variable: "@@all", global: "$recent", constant: { name: "LOG" },
              value: "name", member: "name", thread_local: "cache", thread_variable: "cache", local: "rows",
              method: "total" }.map { |kind, name| { kind => name } }
    edges += %w[key default element receiver superclass singleton class finalizer] << { value: nil }
    shown = Manual.rows(page, "What it says").flat_map { |cells| cells.first.scan(/`([^`]*)`/).flatten }
    expect(shown).to include(*edges.map { |edge| words.text(edge) }, words.text({ local: "rows" }, :thread),
                             words.text("receiver", :thread))
  end

  it "shows what the command prints" do
    printed = Manual.section(page)[/^    34\.9 MiB.*?(?=^\S)/m].gsub(/^    /, "").rstrip.split("\n\n")
    FileUtils.mkdir_p("srv/shop")
    text = Dir.chdir("srv/shop") do
      json = RecordedRetainers.json.gsub("/srv/shop", Dir.pwd).sub('"3 steps of activesupport"', "null")
      MemprofilerPprof::Retainers.new(json, "").to_s
    end
    expect(text.split("\n\n").drop(1)).to eq(printed)
  end

  it "names all of the endpoint's parameters" do
    expect(Manual.section("docs/http.md", "Rack endpoint"))
      .to include(*%w[site= class= timeout=N in_process=1 format=text json pprof])
  end
end
