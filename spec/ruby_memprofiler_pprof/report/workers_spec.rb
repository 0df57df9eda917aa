# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

RSpec.describe MemprofilerPprof::Report::Workers do
  def worker(pid, copied = nil)
    RecordedMemory.memory(pid: pid, copied_bytes: copied && (copied * RecordedMemory::MIB))
  end

  def lines(*workers, names: [], width: 200)
    style = MemprofilerPprof::Report::Style.new(width, false)
    described_class.new(workers, names).to_s(style).lines.map(&:chomp)
  end

  it "shows what processes share, and what copy-on-write has cost" do
    workers = [worker(7), worker(8, 50), worker(9, 20)]
    expect(lines(*workers, names: %w[a.sock b.sock c.sock], width: 100).drop(2)).to eq(<<~TEXT.lines(chomp: true))

      PID      RSS    SHARED  PRIVATE    COPIED   OBJECTS  RUBY CODE  FREE SLOTS  FREE IN MALLOC
        7  204 MiB  15.0 MiB  189 MiB            52.0 MiB   44.8 MiB    32.0 MiB        18.0 MiB  a.sock
        8  204 MiB  15.0 MiB  189 MiB  50.0 MiB  52.0 MiB   44.8 MiB    32.0 MiB        18.0 MiB  b.sock
        9  204 MiB  15.0 MiB  189 MiB  20.0 MiB  52.0 MiB   44.8 MiB    32.0 MiB        18.0 MiB  c.sock
                              566 MiB  70.0 MiB                                                   all
    TEXT
  end

  it "leaves out what is not known" do
    expect(lines(worker(7), worker(8)).join).not_to include("COPIED")
    expect(lines(worker(7), worker(8))[1]).to eq("The processes' own memory is 378 MiB in all. What is shared counts " \
                                                 "in each of them.")
  end

  it "adds nothing up if nobody knows what is its own" do
    quick = [7, 8].map { |pid| RecordedMemory.memory(pid: pid, private_bytes: nil, shared_bytes: nil) }
    expect(lines(*quick, names: %w[a.sock b.sock]))
      .to match(["2 processes", "", /\APID/, /a\.sock\z/, /b\.sock\z/])
  end

  it "adds nothing up if they are of one process at several times" do
    expect(lines(worker(7, 50), worker(7, 60), names: %w[a.pprof b.pprof]))
      .to match(["2 profiles", "", /\APID/, /a\.pprof\z/, /b\.pprof\z/])
  end

  it "tells processes with the same id apart by the addresses that were asked" do
    text = described_class.new([worker(1), worker(1)], addresses: %w[http://a/ http://b/]).to_s
    expect(text).to start_with("2 processes\nThe processes' own memory is 378 MiB in all.")
  end

  it "leaves out parts where there is no room" do
    expect(lines(worker(7), worker(8), names: %w[a.sock b.sock]).grep(/PROFILER/).size).to eq(1)
    expect(lines(worker(7), worker(8), names: %w[a.sock b.sock], width: 60).grep(/PID/))
      .to match([/\APID +RSS +SHARED +PRIVATE +OBJECTS +RUBY CODE\z/])
  end

  it "is JSON with each process" do
    json = described_class.new([worker(7), worker(8, 50)], %w[a.sock b.sock]).to_h
    expect(json).to include(private_bytes: 2 * 197_918_720, copied_bytes: 50 * RecordedMemory::MIB)
    expect(json[:processes].map { |each| each.values_at(:input, :pid) }).to eq([["a.sock", 7], ["b.sock", 8]])
  end
end
