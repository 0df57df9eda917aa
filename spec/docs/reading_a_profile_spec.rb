# frozen_string_literal: true

require "shellwords"
require "tmpdir"

RSpec.describe "docs/reading-a-profile.md" do
  let(:profile) { new_collector(sample_rate: 1.0).profile { @kept = Array.new(100) { +"" } } }

  it "labels" do
    code = Manual.ruby("docs/reading-a-profile.md").first
    outcome = run_ruby("def render = print(MemprofilerPprof.labels.to_a.inspect)\n#{code}", gems: true)
    expect(outcome.stdout).to eq('[[:endpoint, "users#show"], [:tenant, "7"]]'), outcome.to_s
  end

  it "labels with traces" do
    code = Manual.ruby("docs/reading-a-profile.md", "Traces").first
    patched = "print OpenTelemetry::Context.singleton_class.ancestors"
    outcome = run_ruby("require #{StandIns.path("opentelemetry").inspect}\n#{code}\n#{patched}", gems: true)
    expect(outcome.stdout).to include("MemprofilerPprof::OpenTelemetry::Contexts"), outcome.to_s
  end

  it "has the values" do
    names = profile.profile.sample_types.map(&:name)
    expect(Manual.names("docs/reading-a-profile.md", "Values").map(&:to_s)).to eq(names)
  end

  it "has the comments" do
    comments = profile.profile.comments.filter_map { |comment| comment[/\A(\w+)=/, 1] }
    named = Manual.section("docs/reading-a-profile.md", "Comments").scan(/`(\w+)`/).flatten
    expect(comments - named).to eq([])
  end

  it "has the comments of tags" do
    comment = Manual.section("docs/reading-a-profile.md", "Comments")[/`(tag\.\w+=[\w.]+)`/, 1]
    name, value = comment.delete_prefix("tag.").split("=")
    profile = new_collector(sample_rate: 1.0, tags: { name => value }).profile { nil }
    expect(profile.profile.comments).to include(comment)
  end

  it "shows commands that work", :go, :slow do
    commands = Manual.rows("docs/reading-a-profile.md", "With go tool pprof").map { |command,| command.delete("`") }
    expect(commands.size).to be > 10
    Dir.mktmpdir do |directory|
      %w[old heap].each { |name| profile.write("#{directory}/#{name}.pprof") }
      commands.grep_v(/-http/).each do |command|
        outcome = run_command(*Shellwords.split(command), chdir: directory)
        # This profile has no Session.visit.
        expect(outcome).to be_success.or(have_attributes(stderr: /no matches found for regexp: Session/)), outcome.to_s
      end
    end
  end
end
