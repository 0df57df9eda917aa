# frozen_string_literal: true

require "socket"

# Runs docs/finding-a-leak.md, whose figures differ each time. script/pictures updates the page.
RSpec.describe "docs/finding-a-leak.md", :docs, :own_process do
  before(:all) do
    skip "script/test --lane docs runs it" unless ENV["SPEC_DOCS"]

    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    walkthrough = Walkthrough.new("finding-a-leak.md", port: port)
    @printed = walkthrough.printed
    @actual = Dir.mktmpdir { |directory| walkthrough.run(directory) }
  end

  # Those that begin with a heading in capitals.
  def tables(outputs)
    outputs.grep(/^ *[A-Z]+ +95% INTERVAL|^VERDICT/)
  end

  # The first heading, and the place in the first row.
  def gist(table)
    heading, row = table[/^ *[A-Z]{2}.*\n.*/].lines
    [heading[/\S+/], row[/\S+:\d+/] || row[/\S+$/]]
  end

  it "finds the line that leaks, and no other" do
    [@printed, @actual].each do |outputs|
      expect(outputs[1].scan(/^growing .*$/)).to match([%r{ app/services/product_card_cache\.rb:11}])
    end
  end

  it "prints the tables that the page shows" do
    # The page shows the fixed app's output for another example.
    page, now = [@printed, @actual].map { |outputs| tables(outputs)[0..-2].map { |table| gist(table) } }
    expect(now).to eq(page)
    expect(now.size).to eq(4)
  end

  it "says who holds what the line has allocated" do
    [@printed, @actual].each do |outputs|
      expect(outputs.grep(/ held by$/))
        .to match([/product_card_cache\.rb:11\b.* (100|9\d)% held by\n +ProductCardCache .*@cards → Hash/m])
    end
  end

  it "shows the app's source as it is" do
    expect(@actual.grep(/def fetch/)).to eq(@printed.grep(/def fetch/))
    expect(@actual.grep(/def fetch/).size).to eq(1)
  end

  it "no longer reports the line as growing once it is fixed" do
    [@printed, @actual].each do |outputs|
      expect(outputs.last).not_to match(/^(growing|perhaps) .*product_card_cache\.rb/)
      expect(outputs.last).to match(/^VERDICT/)
    end
  end
end

RSpec.describe "The pictures in docs/" do
  let(:directory) { File.expand_path("../../docs", __dir__) }

  it "are those that the pages show, and small" do
    shown = Manual.pages.flat_map { |page| Manual.text(page).scan(%r{\]\((?:docs/)?(\w+\.png)\)}) }.flatten.uniq
    expect(shown).to match_array(Dir.children(directory).grep(/\.png\z/))
    expect(Dir.glob("#{directory}/*.png").map { |picture| File.size(picture) }).to all(be < 150_000)
  end
end
