# frozen_string_literal: true

require "json"
require "tmpdir"

# The commands that show profiles, with those of CPU time.
RSpec.describe "memprofiler with profiles of CPU time" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # 100 of 400 ticks in one method, 300 in another.
  def write(name, factor = 1)
    types = [%w[samples count], %w[cpu nanoseconds]]
    maker = Pprof::Maker.new(types: types, period_type: %w[cpu nanoseconds], weight: nil, comments: { pid: 7 })
    [["a", 100], ["b", 300]].each do |method, ticks|
      maker.sample(["#{method} /app.rb:1"], [ticks * factor, ticks * factor * 10_000_000])
    end
    File.binwrite(name, maker.to_s)
  end

  def memprofiler(*arguments)
    run_command(*SubprocessHelpers::MEMPROFILER, *arguments, env: { "COLUMNS" => nil })
  end

  it "reports times with binomial intervals" do
    write("cpu.pprof")
    # 1 s (1 - 1.96 sqrt(0.75 / 100)) and so on.
    expect(memprofiler("report", "--by", "method", "cpu.pprof").stdout)
      .to match(/^ *1\.00 s +830 ms\.\.1\.17 s +25% .* a  /).and match(/^ *3\.00 s +2\.83 s\.\.3\.17 s +75% .* b  /)
  end

  it "adds up those of one process without a warning" do
    %w[1.pprof 2.pprof].each { |name| write(name) }
    expect(memprofiler("report", "1.pprof", "2.pprof").stdout).not_to include("same process")
  end

  it "compares them" do
    write("old.pprof")
    write("new.pprof", 4)
    expect(memprofiler("diff", "--by", "method", "old.pprof", "new.pprof").stdout)
      .to match(/^\+9\.00 s .* >99\.9% +3\.00 s .*12\.0 s .* b  /)
  end

  it "draws them" do
    write("cpu.pprof")
    memprofiler("flamegraph", "cpu.pprof")
    expect(File.read("cpu.html")).to include('"nanoseconds"')
  end
end
