# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/report"

# What programs rely on.
RSpec.describe "docs/reports-and-leaks.md" do
  let(:page) { "docs/reports-and-leaks.md" }

  def names(cell)
    cell.scan(/`(\w+)`/).flatten
  end

  # The members that the page has for the document, its sections or its findings, of a command.
  def members(part, command)
    Manual.rows(page, "Formats").flat_map do |cells|
      owners = cells[1]
      commands = names(owners)
      names(cells[0]) if owners.include?(part) && (commands.empty? || commands.include?(command))
    end.compact
  end

  # A command's JSON, in this process.
  def json(command, *arguments)
    outcome = run_command(RbConfig.ruby, SubprocessHelpers::EXECUTABLE, command, *arguments, "--json")
    JSON.parse(outcome.stdout)
  end

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  before do
    20.times do |index|
      comments = { pid: 7, major_gc_count: index, "tag.release": "1" }
      profile = Pprof::Maker.lines({ "/srv/a.rb:1" => [0, 400 + (100 * index)] },
                                   time: 1_000_000_000 + (index * 60), comments: comments)
      File.binwrite("#{index}.pprof", profile.to_s)
    end
  end

  it "has all codes, and no others" do
    codes = Manual.rows(page, "Codes").flat_map { |cells| names(cells.first) }
    expect(codes).to match_array(MemprofilerPprof::Report::Codes.constants.map(&:to_s))
  end

  it "has the version of the schema" do
    version = MemprofilerPprof::Report.const_get(:Json)::SCHEMA_VERSION
    expect(Manual.section(page, "Formats")).to include("| `schema_version` | the document | #{version};")
  end

  { "report" => %w[--by-tag release 1.pprof], "diff" => %w[1.pprof 7.pprof], "leaks" => %w[--by-tag release .] }
    .each do |command, arguments|
    it "has the members of what #{command} prints as JSON" do
      document = json(command, *arguments)
      section = document["sections"].first
      optional = %w[parent holder] + (command == "diff" ? %w[tag] : [])
      expect(document.keys).to match_array(members("the document", command))
      expect(section.keys).to match_array(members("sections", command) - optional)
      expect(section["findings"].first.keys).to match_array(members("findings", command) - optional)
    end
  end

  it "has the members of a tree" do
    nodes = json("report", "--tree", "1.pprof")["sections"].first["findings"]
    expect(nodes.first.keys).to match_array(members("findings", "report"))
    expect(nodes.map { |node| node["parent"] }).to eq([nil, 0])
  end
end
