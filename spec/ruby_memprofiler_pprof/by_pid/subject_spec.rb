# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid/subject"
require "socket"

RSpec.describe "MemprofilerPprof::ByPid::Subject", if: RUBY_PLATFORM.include?("linux") do
  let(:type) { MemprofilerPprof::ByPid::Subject }
  let(:error) { MemprofilerPprof::ByPid::Error }
  let(:own) { type.new(Process.pid) }

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  it "takes only numbers for PIDs, unless there is a file of that name" do
    FileUtils.touch("12")
    expect(%w[1 12 0 4x tmp/1].map { |text| type.pid(text) }).to eq([1, nil, nil, nil, nil])
  end

  it "knows the process's own id and owner" do
    expect([own.own_pid, own.owner]).to eq([Process.pid, [Process.euid, Process.egid]])
  end

  it "finds the profiler's socket among those on which the process listens" do
    sockets = %w[puma.sock memprofiler-1.sock].map { |name| UNIXServer.new(File.expand_path(name)) }
    expect(own.socket).to eq(File.expand_path("memprofiler-1.sock"))
    sockets.each(&:close)
    expect(own.socket).to be_nil
  end

  it "finds a socket whose name is no text" do
    path = File.expand_path("mem-\xFF.sock")
    socket = UNIXServer.new(path)
    expect(own.socket).to eq(path.b)
  ensure
    socket&.close
  end

  it "looks for no socket where nobody would answer", :aggregate_failures do
    pid = spawn("sleep", "60")
    Process.kill(:STOP, pid)
    wait_until { File.read("/proc/#{pid}/stat").match?(/\) T /) }
    expect { type.new(pid).socket }.to raise_error(error, "process #{pid} is stopped: kill -CONT #{pid} first")
    Process.kill(:KILL, pid)
    wait_until { type.new(pid).ended? }
    expect { type.new(pid).socket }.to raise_error(error, "process #{pid} has ended")
  ensure
    Process.wait(pid)
  end

  it "knows which libraries are mapped" do
    expect(%w[ruby_memprofiler_pprof.so no_such_library.so].map { |name| own.maps?(name) }).to eq([true, false])
  end

  it "reads what is known of a program whose name is no text" do
    name = "\xFF"
    FileUtils.cp("/bin/sleep", name)
    pid = spawn("./#{name}", "60")
    wait_until { File.binread("/proc/#{pid}/comm") == "\xFF\n".b }
    expect(type.new(pid).own_pid).to eq(pid)
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "knows a library that was deleted" do
    FileUtils.cp("/bin/sleep", "a.so")
    pid = spawn("./a.so", "60")
    wait_until { type.new(pid).maps?("/a.so") }
    File.unlink("a.so")
    expect(type.new(pid).maps?("/a.so")).to be(true)
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "knows whether the process has ended" do
    pid = spawn("true")
    wait_until { type.new(pid).ended? }
    Process.wait(pid)
    expect([own, type.new(pid)].map(&:ended?)).to eq([false, true])
  end

  it "says that there is no such process" do
    expect { type.new(2_147_483_647).socket }.to raise_error(error, /no process 2147483647/)
  end
end
