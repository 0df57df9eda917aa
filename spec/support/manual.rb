# frozen_string_literal: true

# The README and the pages in docs/, for examples that run or check them.
module Manual
  ROOT = File.expand_path("../..", __dir__)

  module_function

  # @return [Array<String>] the names of all pages, such as "docs/rails.md"
  def pages
    ["README.md", *Dir.glob("docs/*.md", base: ROOT)]
  end

  # @param page [String] such as "docs/rails.md"
  # @return [String]
  def text(page)
    File.read(File.join(ROOT, page))
  end

  # @return [String] what follows a heading, up to the next one; without a heading the whole page
  def section(page, heading = nil)
    return text(page) unless heading

    text(page)[/^##+ #{Regexp.escape(heading)}\n(.*?)(?=^##|\z)/m, 1] || raise("#{page} has no section #{heading}")
  end

  # @return [Array<String>] the Ruby code in a section, block by block
  def ruby(page, heading = nil)
    section(page, heading).scan(/^```ruby\n(.*?)^```$/m).flatten
  end

  # @return [Array<Array<String>>] the cells of the rows of all tables in a section, without table heads
  def rows(page, heading = nil)
    section(page, heading).scan(/^\|[-:|]+\|\n((?:\|.*\n)+)/).flat_map do |lines,|
      lines.scan(/^\| (.*) \|$/).map { |row,| row.split(" | ") }
    end
  end

  # @return [Hash{Symbol => String}] by the name in the first column, the default in the second
  def defaults(page, heading = nil)
    section(page, heading).scan(/^\| `(\w+)`[^|]*\| `([^`]*)` \|/)
                          .to_h { |name, value| [name.to_sym, value.gsub(/(?<=\d)_/, "")] }
  end

  # @return [Array<Symbol>] the names in the first column of a section's tables
  def names(page, heading = nil)
    section(page, heading).scan(/^\| (`.*?) \|/).flat_map { |cell,| cell.scan(/`(\w+\??)[^`]*`/).flatten }.map(&:to_sym)
  end
end
