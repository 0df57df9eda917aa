# frozen_string_literal: true

require "fileutils"
require "json"
require "rbconfig"

# Shared by the benchmarks.
module Bench
  # The checkout.
  ROOT = File.expand_path("../..", __dir__)

  # Goes to stderr, so that stdout has only the tables.
  class Progress
    def initialize(total)
      @total = total
      @done = 0
      @lock = Mutex.new
    end

    def step(what)
      line = @lock.synchronize { "[#{@done += 1}/#{@total}] #{what}" }
      $stderr.tty? ? $stderr.print("\r\e[K#{line}") : warn(line)
    end

    def finish
      $stderr.print("\r\e[K") if $stderr.tty?
    end
  end

  class << self
    # Builds the extension if its sources are newer, as script/demo does.
    def compile
      Dir.chdir(ROOT) do
        system(RbConfig.ruby, "-S", "rake", "--quiet", "compile", out: :err) || abort("the extension does not compile")
      end
    end

    # Seconds, on a monotonic clock.
    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def machine
      { ruby: RUBY_DESCRIPTION, cpu: cpu_model, processors: processors, load_average: load_average,
        time: Time.now.utc.strftime("%FT%TZ") }
    end

    # A table in Markdown, for the terminal and for documents. Figures are right-aligned.
    def table(title, header, rows)
      columns = [header, *rows.map { |row| row.map(&:to_s) }].transpose.map { |cells| column(cells) }
      head, rule, *body = columns.transpose.map { |cells| "|#{cells.join("|")}|" }
      ["", title, "", head, rule, *body].join("\n")
    end

    # @return [String] the path
    def write_json(path, name, contents)
      path ||= File.join(ROOT, "tmp/bench/#{name}-#{RUBY_VERSION}-#{Time.now.strftime("%Y%m%d-%H%M%S")}.json")
      FileUtils.mkdir_p(File.dirname(path))
      # The interval of a single round is infinite.
      File.write(path, JSON.pretty_generate(contents, allow_nan: true))
      path
    end

    def median(values)
      sorted = values.sort
      (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2.0
    end

    # "12.3 (11.9–13.0)": median, minimum and maximum.
    def spread(values, digits)
      median, least, most = [median(values), *values.minmax].map { |value| number(value, digits) }
      values.size > 1 ? "#{median} (#{least}–#{most})" : median
    end

    # With thousands separators.
    def number(value, digits = 0)
      whole, fraction = format("%.#{digits}f", value).split(".")
      [whole.gsub(/(\d)(?=(\d{3})+\z)/, '\1,'), fraction].compact.join(".")
    end

    private

    # The cells with the rule below the first, padded to the same width.
    def column(cells)
      width = cells.map(&:size).max
      right = cells.drop(1).all?(/\A([-+\d<]|\z)/)
      head, *body = cells.map { |cell| " #{right ? cell.rjust(width) : cell.ljust(width)} " }
      [head, "#{"-" * (width + 1)}#{right ? ":" : "-"}", *body]
    end

    def cpu_model
      File.read("/proc/cpuinfo")[/^model name\s*: (.*)/, 1]
    rescue SystemCallError
      IO.popen(%w[sysctl -n machdep.cpu.brand_string], err: File::NULL, &:read).chomp
    end

    def processors
      require "etc"
      Etc.nprocessors
    end

    # Above the number of processors, timings mean little.
    def load_average
      File.read("/proc/loadavg").split.first.to_f
    rescue SystemCallError
      nil
    end
  end
end
