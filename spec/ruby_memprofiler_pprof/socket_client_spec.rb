# frozen_string_literal: true

require "ruby_memprofiler_pprof/socket_client"
require "tmpdir"

RSpec.describe MemprofilerPprof::SocketClient do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  after { servers.each { |thread| thread.kill.join } }

  let(:servers) { [] }
  let(:client) { described_class.new("a.sock") }

  # Answers one request. Returns a queue with what was asked.
  def serve(answer)
    server = UNIXServer.new("a.sock")
    asked = Queue.new
    servers << Thread.new do
      server.accept.tap { |io| (asked << io.readpartial(99)) && io.write(answer) }.close
    rescue Errno::EPIPE, EOFError
      # The client has hung up.
      nil
    end
    asked
  end

  it "asks, and returns status and body" do
    asked = serve("HTTP/1.0 503 Oh\r\nContent-Length: 5\r\n\r\nsorry")
    expect([client.get("/heap?seconds=1", 60), asked.pop])
      .to eq([[503, "sorry"], "GET /heap?seconds=1 HTTP/1.0\r\n\r\n"])
  end

  it "does not wait for ever" do
    # Nobody accepts.
    server = UNIXServer.new("a.sock")
    expect { client.get("/heap", 0.01) }.to raise_error(described_class::NoAnswer, "no answer within 0.01 s")
    server.close
  end

  it "does not wait for a process that is stopped" do
    skip "only Linux says who listens" unless RUBY_PLATFORM.include?("linux")
    reader, writer = IO.pipe
    pid = fork { UNIXServer.open("a.sock") { writer.puts || sleep } }
    reader.gets
    Process.kill(:STOP, pid)
    wait_until { File.read("/proc/#{pid}/stat").match?(/\) T /) }
    expect { client.get("/heap", 1000) }
      .to raise_error(described_class::NoAnswer, "process #{pid} is stopped: kill -CONT #{pid} first")
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  it "takes no answer without an end" do
    stub_const("#{described_class}::MOST_BYTES", 1000)
    serve("x" * 200_000)
    expect { client.get("/heap", 60) }.to raise_error(described_class::NoAnswer, "the answer has more than 1000 bytes")
  end

  it "takes no part of an answer" do
    serve("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nsorr")
    expect { client.get("/heap", 60) }.to raise_error(described_class::NoAnswer, "the process has hung up")
  end

  it "asks the process that it is to ask", if: RUBY_PLATFORM.include?("linux") do
    serve("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
    expect(described_class.new("a.sock", pid: Process.pid).get("/heap", 60)).to eq([200, "ok"])
  end

  it "asks no other process than it is to ask", if: RUBY_PLATFORM.include?("linux") do
    asked = serve("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
    expect { described_class.new("a.sock", pid: Process.ppid).get("/heap", 60) }
      .to raise_error(described_class::NoAnswer, "process #{Process.pid} listens there, not process #{Process.ppid}")
    servers.each(&:join)
    expect(asked).to be_empty
  end

  it "ends no process by SIGPIPE if the other hangs up before it is asked" do
    outcome = run_ruby(<<~RUBY)
      require "ruby_memprofiler_pprof/socket_client"
      trap("PIPE", "SYSTEM_DEFAULT")
      server = UNIXServer.new("b.sock")
      client = MemprofilerPprof::SocketClient.new("b.sock", pid: Process.pid)
      client.define_singleton_method(:check_listener) { |_| server.accept.close }
      begin
        client.get("/heap", 60)
      rescue MemprofilerPprof::SocketClient::NoAnswer => e
        print e.message
      end
    RUBY
    expect(outcome.stdout).to eq("Broken pipe"), outcome.to_s
  end

  it "says that nobody listens" do
    expect { client.get("/heap", 60) }.to raise_error(described_class::NoAnswer, "No such file or directory")
  end
end
