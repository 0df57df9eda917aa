# frozen_string_literal: true

require "tmpdir"

RSpec.describe MemprofilerPprof::FileSeries do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # The remaining times of a series that was written at these times.
  def left(times, keep)
    times.each_with_object([]) do |time, kept|
      kept << time
      kept.delete_at(described_class.superfluous(kept)) if kept.size > keep
    end
  end

  def write(series, name, time)
    File.write(name, "profile")
    series.add(File.expand_path(name), time)
  end

  describe ".superfluous" do
    random = Random.new(1)
    {
      "at an interval" => Array.new(5_000) { |index| index * 30 },
      "at random times" => Array.new(2_000) { random.rand(1e6) }.sort,
      "at once" => [5.0] * 300,
      "at ever longer intervals" => Array.new(500) { |index| index**3 }
    }.each do |kind, times|
      [2, 3, 8, 100].each do |keep|
        it "keeps the first and the newest half of #{keep} files written #{kind}" do
          kept = left(times, keep)
          expect([kept.size, kept.first, kept.last(keep / 2)]).to eq([keep, times.first, times.last(keep / 2)])
        end
      end
    end

    it "leaves gaps that grow no faster than the age of the files, after an hour and after a month" do
      [120, 86_400].each do |count|
        kept = left(Array.new(count) { |index| index * 30 }, 100)
        gaps = kept.each_cons(2).map { |older, newer| (newer - older).fdiv(kept.last - older) }
        expect(gaps.first(50).max).to be < 0.25
      end
    end

    it "keeps the newest if there is room for only one" do
      expect(left([1, 2, 3], 1)).to eq([3])
    end
  end

  describe "#add" do
    it "removes the superfluous file" do
      series = described_class.new(3)
      4.times { |index| write(series, index.to_s, index) }
      expect(Dir.children(".").sort).to eq(%w[0 2 3])
    end

    it "removes none if all are kept" do
      series = described_class.new(0)
      9.times { |index| write(series, index.to_s, index) }
      expect(Dir.children(".").size).to eq(9)
    end

    it "removes what was written beside it, too" do
      series = described_class.new(2)
      3.times do |index|
        File.write("#{index}+", "more")
        File.write(index.to_s, "profile")
        series.add(File.expand_path(index.to_s), index, File.expand_path("#{index}+"))
      end
      expect(Dir.children(".").sort).to eq(%w[0 0+ 2 2+])
      expect(series.paths.map { |path| File.basename(path) }).to eq(%w[0 2])
    end

    it "leaves a file with which somebody has replaced one" do
      series = described_class.new(1)
      write(series, "a", 1)
      File.write("b", "not a profile")
      File.rename("b", "a")
      write(series, "c", 2)
      expect(Dir.children(".").sort).to eq(%w[a c])
    end

    it "continues if a file is already gone" do
      series = described_class.new(1)
      write(series, "a", 1)
      File.unlink("a")
      write(series, "b", 2)
      expect(Dir.children(".")).to eq(["b"])
    end
  end

  describe "#touch" do
    it "touches all files, in their order" do
      series = described_class.new(2)
      %w[b a].each_with_index { |name, time| write(series, name, time) }
      series.touch(Time.at(2_000_000_000))
      expect(%w[b a].map { |name| File.mtime(name).to_f.round(3) }).to eq([1_999_999_999.999, 2_000_000_000])
    end

    it "touches what was written beside them" do
      File.write("b", "more")
      File.write("a", "profile")
      series = described_class.new(2)
      series.add(File.expand_path("a"), 0, File.expand_path("b"))
      series.touch(Time.at(2_000_000_000))
      expect(%w[a b].map { |name| File.mtime(name).to_i }).to eq([2_000_000_000] * 2)
    end

    it "still recognizes them as its own" do
      series = described_class.new(1)
      write(series, "a", 1)
      series.touch(Time.at(2_000_000_000))
      write(series, "b", 2)
      expect(Dir.children(".")).to eq(["b"])
    end
  end
end
