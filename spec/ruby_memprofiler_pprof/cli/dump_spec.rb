# frozen_string_literal: true

require "socket"
require "tmpdir"

RSpec.describe "memprofiler dump", :threads do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:profiler) { MemprofilerPprof::DefaultProfiler.new({}) }

  before { stub_const("Kept", Class.new) }

  after { profiler.stop }

  def dump(*arguments)
    run_command(*SubprocessHelpers::MEMPROFILER, "dump", *arguments)
  end

  def expect_failure(outcome, message)
    expect(outcome).to have_attributes(status: have_attributes(exitstatus: 2), stdout: "", stderr: message)
  end

  # This process is the one that is asked.
  def serve
    profiler.start(socket: "a.sock", sample_rate: 1)
    @kept = Array.new(7) { Kept.new }
  end

  def count(bytes, type = :retained_objects)
    MemprofilerPprof::Profile.load(StringIO.new(bytes)).tag(class: "Kept").total(type).value
  end

  it "writes a file with a new name, readable by its owner only" do
    serve
    names = Array.new(2) { dump("a.sock").stdout.chomp }
    directory = Regexp.escape("#{Dir.pwd}/tmp/profiles")
    expect(names).to all(match(%r{\A#{directory}/dump-#{Process.pid}-\d+T\d+Z(_x1)?\.pprof\z}))
    expect(names.uniq.map { |name| [File.stat(name).mode & 0o777, count(File.binread(name))] }).to eq([[0o600, 7]] * 2)
  end

  it "writes to the named file" do
    serve
    expect(dump("a.sock", "-o", "b.pprof")).to have_attributes(stdout: "b.pprof\n", stderr: "")
    expect(count(File.binread("b.pprof"))).to eq(7)
  end

  it "writes to stdout, as bytes" do
    serve
    expect(count(dump("-o", "-", "a.sock").stdout.b)).to eq(7)
  end

  it "refuses, before it asks, a file that cannot be written", :aggregate_failures do
    Dir.mkdir("d")
    { "d" => "d: Is a directory", "no/b.pprof" => "no/b.pprof: No such file or directory",
      "" => "--output needs the name of a file" }.each do |output, message|
      expect_failure(dump("nobody.sock", "-o", output), "memprofiler: #{message}\n")
    end
    expect(Dir.children("d")).to eq([])
  end

  it "refuses, before it asks, a directory in which no new file can be made" do
    File.write("tmp", "in the way")
    expect_failure(dump("nobody.sock"),
                   "memprofiler: #{Dir.pwd}/tmp/profiles: Not a directory; --output names another file\n")
  end

  it "does not affect the process's own profiles" do
    serve
    dump("a.sock")
    expect(count(profiler.collector.flush.pprof_data, :allocations)).to eq(7)
  end

  it "says that nobody listens, and whether the process in the socket's name has ended", :aggregate_failures do
    ["mem-#{Process.pid}.sock", "mem-9999999.sock"].each { |name| UNIXServer.new(name).close }
    expect_failure(dump("mem-9999999.sock"),
                   "memprofiler: mem-9999999.sock: nobody listens there: the process has ended\n")
    expect_failure(dump("mem-#{Process.pid}.sock"),
                   "memprofiler: mem-#{Process.pid}.sock: nobody listens there, but process #{Process.pid} runs: " \
                   "it has closed its socket; try again\n")
  end

  describe "of a server in the process's place" do
    # Answers one request with these bytes, and returns the request.
    def answer(server, bytes)
      client = server.accept
      request = client.readpartial(99)
      client.write(bytes)
      request
    ensure
      client&.close
    end

    def dump_from_server(bytes, *options)
      UNIXServer.open("a.sock") do |server|
        outcome = Thread.new { dump(*options, "a.sock") }
        request = answer(server, bytes)
        [request, outcome.value]
      end
    end

    it "counts allocations over the given seconds" do
      request, outcome = dump_from_server("", "--seconds", "2")
      expect(request).to start_with("GET /heap?seconds=2 ")
      expect_failure(outcome, "memprofiler: a.sock: the process has hung up\n")
    end

    it "writes nothing that is not a profile" do
      _, outcome = dump_from_server("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", "-o", "b.pprof")
      expect_failure(outcome, /\Amemprofiler: a.sock: no profile came: not a valid pprof profile: /)
      expect(File).not_to exist("b.pprof")
    end
  end

  describe "of another server" do
    hint = "this is no profile; the URL must be that of the endpoint, such as http://127.0.0.1:3000/debug/pprof"
    { [404, { "Content-Type" => "text/html" }] => "#{hint} (status 404)",
      [404, { "Content-Type" => "text/plain" }] => "body (status 404)",
      [302, { "Location" => "/login" }] => "it leads to /login (status 302)",
      [401, {}] => "the server asks who you are, which --header can say (status 401)" }.each do |answer, message|
      it "says what #{answer.first} with #{answer.last} means" do
        FakeHttpServer.run(answer) do |server|
          expect_failure(dump(server.url), "memprofiler: #{server.url}: #{message}\n")
        end
      end
    end
  end

  it "reports wrong arguments" do
    expect_failure(dump, "memprofiler: exactly one PID, socket or URL is needed, got 0, see memprofiler dump --help\n")
    expect_failure(dump("--seconds", "61", "a.sock"), /--seconds 61, must be in 1\.\.60/)
    expect_failure(dump("--header", "X: 1\nY: 2", "http://a"), /invalid argument: --header "X: 1\\nY: 2", must be one/)
    expect_failure(dump("http://me:secret@a"),
                   "memprofiler: give user and password by --header 'Authorization: …', not in a URL\n")
  end

  it "reports what is no socket of a process", :aggregate_failures do
    expect_failure(dump("none"), "memprofiler: none: there is no socket; does the program run with --socket?\n")
    expect_failure(dump("localhost:3/a"), "memprofiler: localhost:3/a: there is no socket; a URL begins with http://\n")
    expect_failure(dump("."), "memprofiler: .: it is a directory, and dump takes the socket of one process\n")
    File.write("a.pprof", "")
    expect_failure(dump("a.pprof"), "memprofiler: a.pprof: it is no socket; memprofiler report reads profiles\n")
  end

  it "reports that a path is too long for a socket" do
    path = "a" * 200
    expect_failure(dump(path), /\Amemprofiler: #{path}: too long unix socket path .*\n\z/)
  end

  it "reports that a file cannot be written" do
    serve
    expect_failure(dump("-o", "none/b.pprof", "a.sock"), "memprofiler: none/b.pprof: No such file or directory\n")
  end
end
