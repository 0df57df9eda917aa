# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid/limits"
require "ruby_memprofiler_pprof/by_pid/subject"

RSpec.describe "MemprofilerPprof::ByPid::Limits" do
  let(:error) { MemprofilerPprof::ByPid::Error }

  # @param descriptors [Integer, Range] the number of them, or their numbers
  def limits(files: "unlimited", addresses: "unlimited", descriptors: 3, size: 1000)
    subject = instance_double(MemprofilerPprof::ByPid::Subject, pid: 7, descriptors: [*descriptors])
    allow(subject).to receive(:read).with("limits").and_return(<<~TEXT)
      Limit                     Soft Limit           Hard Limit           Units
      Max open files            #{files.to_s.ljust(20)} 1048576              files
      Max address space         #{addresses.to_s.ljust(20)} unlimited            bytes
    TEXT
    allow(subject).to receive(:read).with("status").and_return("VmPeak:\t    2000 kB\nVmSize:\t    #{size} kB\n")
    MemprofilerPprof::ByPid::Limits.new(subject)
  end

  it "accepts a process without limits" do
    expect(limits.check).to be_nil
  end

  it "counts the addresses that are left", :aggregate_failures do
    expect(limits(addresses: 201_024_000).check).to be_nil
    expect { limits(addresses: 201_023_999).check }
      .to raise_error(error, "process 7 has 199 MB of addresses (ulimit -v) left, and the profiler needs 200: start " \
                             "it with more, or raise the limit by prlimit --pid 7 --as=NUMBER")
    expect { limits(addresses: 1).check }.to raise_error(error, /has 0 MB/)
  end

  it "counts the descriptors that are left", :aggregate_failures do
    expect(limits(files: 18, descriptors: 0..9).check).to be_nil
    expect { limits(files: 17, descriptors: 0..9).check }
      .to raise_error(error, "process 7 has 7 file descriptors (ulimit -n) left, and the profiler needs 8: start " \
                             "it with more, or raise the limit by prlimit --pid 7 --nofile=NUMBER")
  end

  it "does not count descriptors beyond the limit, which was lowered since" do
    expect([limits(files: 4, descriptors: [0, 1, 20]), limits(files: 2, descriptors: 0..9)].map(&:descriptors))
      .to eq([2, 0])
  end
end
