# frozen_string_literal: true

require "fileutils"
require "open3"

# A page in docs/ whose commands can be run: blocks of "sh" are run one after another in a single shell, blocks of
# "diff" are applied there, and a block of "text" is the output of the commands before it.
class Walkthrough
  ROOT = File.expand_path("../..", __dir__)
  FENCE = /^```(\w+)\n(.*?)^```$/m
  # Separates the outputs of blocks.
  MARK = "@@@ end of block"
  # How many seconds everything may take.
  PATIENCE = 1200
  # Flushes let requests go first, which takes ten seconds on a busy machine. Then more visitors come than a page says,
  # so that the last program has as many profiles as it takes to tell a leak from ups and downs.
  VISITORS = /^ruby visitors\.rb (\d+) \d+$/
  MORE_VISITORS = 'while test "$(find tmp -name "*$!-*.pprof" | wc -l)" -lt 30; do ' \
                  "ruby visitors.rb %<port>s 10 >more.log; done"

  # @param name [String] of the file in docs/
  # @param port [Integer] in place of 3000
  def initialize(name, port:)
    @path = File.join(ROOT, "docs", name)
    @text = File.read(@path)
    @port = port
  end

  # Runs it in a directory, which takes the place of a clone.
  #
  # @return [Array<String>] what each of {#printed} is now
  # @raise [RuntimeError] if a command fails
  def run(directory)
    populate(directory)
    output, errors, status = Open3.capture3({ "PORT" => @port.to_s }, "timeout", PATIENCE.to_s, "bash", "-c", script,
                                            chdir: directory)
    raise "#{status}:\n#{output}\n#{errors}" unless status.success? && errors.empty?

    results = output.split("#{MARK}\n", -1)
    expected.zip(results).filter_map { |text, result| result if text }
  end

  # @return [Array<String>] the output according to the page
  def printed
    expected.compact
  end

  # @param outputs [Array<String>] as {#run} returns them
  def update(outputs)
    outputs = outputs.dup
    File.write(@path, @text.gsub(/^```text\n.*?^```$/m) { "```text\n#{outputs.shift}```" })
  end

  private

  # The kind and the text of each block.
  def blocks
    @text.scan(FENCE)
  end

  # The expected output of each block, nil where the page shows none.
  def expected
    blocks.chunk_while { |_, (kind, _)| kind == "text" }
          .map { |_, answer| answer&.last }
  end

  def script
    commands = blocks.filter_map do |kind, text|
      case kind
      when "sh" then text.gsub(/\b3000\b/, @port.to_s).gsub(VISITORS, "\\0\n#{format(MORE_VISITORS, port: @port)}")
      when "diff" then "patch --quiet --strip=0 <<'PATCH'\n#{text}PATCH\n"
      end
    end
    # No server is left behind, whatever happens.
    "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || :' EXIT\n#{commands.join("echo '#{MARK}'\n")}"
  end

  def populate(directory)
    %w[exe lib].each { |name| File.symlink(File.join(ROOT, name), File.join(directory, name)) }
    apps = File.join(directory, "spec", "apps")
    FileUtils.mkdir_p(apps)
    FileUtils.cp_r(File.join(ROOT, "spec", "apps", "shop"), apps)
    FileUtils.rm_rf([File.join(apps, "shop", "tmp"), File.join(apps, "shop", "log")])
  end
end
