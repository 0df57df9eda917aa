# frozen_string_literal: true

# The README and the pages in docs/ as a whole.
RSpec.describe "The manual" do
  # The anchors of a page's headings, as GitHub generates them.
  def anchors(page)
    prose = Manual.text(page).gsub(/^```.*?^```$/m, "")
    prose.scan(/^#+ (.*)/).map { |heading,| heading.downcase.gsub(/[^\w\- ]/, "").tr(" ", "-") }
  end

  def dead?(page, target)
    path, anchor = target.split("#", 2)
    linked = path.empty? ? page : File.expand_path(path, "/#{File.dirname(page)}").delete_prefix("/")
    return true unless File.exist?(File.join(Manual::ROOT, linked))

    !anchor.nil? && !anchors(linked).include?(anchor)
  end

  it "links to existing pages only" do
    pages = Manual.pages + %w[CONTRIBUTING.md IMPLEMENTATION.md CHANGELOG.md]
    dead = pages.flat_map do |page|
      targets = Manual.text(page).scan(/\]\(([^)\s]+)\)/).flatten.reject { |target| target.start_with?("http") }
      targets.select { |target| dead?(page, target) }.map { |target| "#{page}: #{target}" }
    end
    expect(dead).to eq([])
  end

  it "lists all pages in docs/README.md" do
    listed = Manual.text("docs/README.md").scan(/\]\(([\w-]+\.md)\)/).map { |name,| "docs/#{name}" }
    expect(listed).to match_array(Manual.pages - %w[README.md docs/README.md])
  end
end
