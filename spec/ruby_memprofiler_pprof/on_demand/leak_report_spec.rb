# frozen_string_literal: true

require "ruby_memprofiler_pprof/on_demand/leak_report"
require "tmpdir"

RSpec.describe MemprofilerPprof::OnDemand::LeakReport do
  # Profiles a minute apart, in which one line keeps growing.
  def series(size, **comments)
    Array.new(size) do |number|
      Pprof::Maker.lines({ "/app/leaky.rb:7" => [1000, 1000 * number], "/app/calm.rb:1" => [100, 500] },
                         time: 60 * (number + 1), comments: { pid: 7, major_gc_count: number, **comments }).to_s
    end
  end

  def report(profiles, **options)
    described_class.new(profiles, 60, **options).to_s
  end

  it "says what leaks does" do
    expect(report(series(20))).to match(/\AProcess 7: 20 profiles, 1970-01-01 00:01:00 to 1970-01-01 00:20:00 UTC$/)
      .and match(%r{^growing .* /app/leaky\.rb:7 }).and end_with("Growing: 1; 1 steady.")
  end

  it "groups by what is asked for" do
    expect(report(series(20), by: :file)).to match(%r{^growing .* /app/leaky\.rb$})
  end

  it "says how long to wait for as many profiles as are needed, and for as many as are better" do
    expect(report(series(7))).to include("7 profiles are too few")
      .and end_with("One comes every 60 s: there will be 8 in 60 s.")
    expect(report(series(8))).to end_with("One comes every 60 s: there will be 20 in 12 min.")
    expect([0, 1].map { |size| report(series(size))[/ (.*) so far/, 1] }).to match([/0 profiles/, /1 profile$/])
  end

  it "reads a bounded number, from the first to the last" do
    expect(report(series(200))).to match(/: 24 profiles, 1970-01-01 00:01:00 to 1970-01-01 03:20:00 UTC$/)
  end

  it "does without files that are gone" do
    Dir.mktmpdir do |directory|
      paths = series(3).each_with_index.map { |bytes, i| "#{directory}/#{i}".tap { |path| File.binwrite(path, bytes) } }
      File.unlink(paths[1])
      expect(report(paths)).to include("Process 7: 2 profiles,")
    end
  end

  it "is of the time since the profiler was started last" do
    expect(report(series(3, started_at: 1) + series(9, started_at: 2).drop(4))).to include("Process 7: 5 profiles,")
  end
end
