# frozen_string_literal: true

require "json"
require "shellwords"

# The gem's commands, wherever a page mentions one.
RSpec.describe "The manual's commands" do
  # Arguments, without comments and redirections.
  def arguments(line)
    Shellwords.split(line.sub(/ +#.*/, "").sub(/\s(?:[0-9]?>|&\s*\z).*/, ""))
  end

  # @return [Array<String>] the lines of code on all pages, and the text in backquotes, that call the gem
  def commands
    Manual.pages.flat_map do |page|
      code = Manual.text(page).scan(/^(?:    )?(?:\$ )?(?:bundle exec )?memprofiler (.*)$/)
      prose = Manual.text(page).gsub(/^```.*?^```$/m, "").scan(/`memprofiler ([^`…]*)`/)
      (code + prose).flatten
    end.uniq
  end

  # The options of a command, according to its help.
  def options(command)
    outcome = run_command(RbConfig.ruby, *load_path_options, SubprocessHelpers::EXECUTABLE, "help",
                          command)
    outcome.stdout.scan(/^ +(?:-\w, )?(--[\w\[\]-]+)/).flatten - %w[--help]
  end

  it "have valid names and options" do
    lines = commands.grep_v(/COMMAND|OPTION/)
    expect(lines.size).to be > 20
    outcome = run_ruby(<<~RUBY, args: [JSON.dump(lines.map { |line| arguments(line) })])
      require "json"
      require "ruby_memprofiler_pprof/cli"
      JSON.parse(ARGV.first).each do |name, *arguments|
        MemprofilerPprof::CLI.check(name)
        MemprofilerPprof::CLI.command(name).new(name).send(:parse, arguments)
      rescue MemprofilerPprof::CLI::Failure, OptionParser::ParseError => e
        puts "\#{name} \#{arguments.join(" ")}: \#{e.message}"
      end
    RUBY
    expect([outcome.stdout, outcome.stderr]).to eq(["", ""])
  end

  { "docs/reports-and-leaks.md" => %w[report diff leaks], "docs/watching-live.md" => %w[top],
    "docs/flame-graph.md" => %w[flamegraph], "docs/who-holds-it.md" => %w[why],
    "docs/where-memory-is.md" => %w[memory], "docs/reading-a-profile.md" => %w[export] }.each do |page, names|
    it "have all their options in #{page}, and no others" do
      all = names.flat_map { |name| options(name) }.uniq
      named = Manual.rows(page).flatten.flat_map { |cell| cell.scan(/`[^`]*`/) }
                    .flat_map { |code| code.scan(/--[\w\[\]-]+/) }.uniq
      expect(named - %w[--no-app --app]).to match_array(all)
    end
  end
end
