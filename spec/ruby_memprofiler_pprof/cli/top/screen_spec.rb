# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli"
require "ruby_memprofiler_pprof/cli/top"
require "ruby_memprofiler_pprof/cli/top/screen"
require "stringio"

RSpec.describe "MemprofilerPprof::CLI::Top::Screen" do
  # @return [Array<String>] what is written for lines on a terminal of so many columns
  def drawn(width, *lines)
    output = StringIO.new
    output.define_singleton_method(:winsize) { [24, width] }
    MemprofilerPprof::CLI::Top::Screen.new(nil, output).draw(lines)
    output.string.delete_prefix("\e[H").delete_suffix("\e[J").split("\r\n").map { |line| line.delete_prefix("\e[K") }
  end

  it "says that a line goes on beyond the terminal" do
    expect(drawn(8, "12345678", "123456789", "")).to eq(["12345678", "12345...", ""])
  end

  it "counts columns, of which a style takes none", :aggregate_failures do
    bold = "\e[1m1234\e[0m5678"
    expect(drawn(8, bold, "#{bold}9", "\e[1m123456\e[0m789")).to eq([bold, "\e[1m1234\e[0m5...", "\e[1m12345\e[0m..."])
    expect(drawn(8, "王王王王", "王王王王1")).to eq(%w[王王王王 王王...])
  end
end
