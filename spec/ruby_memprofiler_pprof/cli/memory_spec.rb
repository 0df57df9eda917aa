# frozen_string_literal: true

require "json"
require "rack"
require "ruby_memprofiler_pprof/rack"
require "socket"
require "tmpdir"

RSpec.describe "memprofiler memory" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:profiler) { MemprofilerPprof::DefaultProfiler.new({}) }

  after { profiler.stop }

  def memory(...)
    run_command(*SubprocessHelpers::MEMPROFILER, "memory", ...)
  end

  def expect_failure(outcome, message)
    expect(outcome).to have_attributes(status: have_attributes(exitstatus: 2), stdout: "", stderr: message)
  end

  # This process is the one that is asked.
  # @return [Array<Boolean>] what it was asked
  def serve(socket = "a.sock", &)
    profiler.start(socket: socket)
    RecordedMemory.answer_of(profiler.collector, &)
  end

  def record(name, **comments)
    FileUtils.mkdir_p(File.dirname(name))
    File.binwrite(name, Pprof::Maker.lines({ "/a.rb:1" => [0, 100] }, comments: { pid: 7, **comments }).to_s)
  end

  describe "of a socket" do
    it "prints where all of the memory is" do
      asked = serve
      outcome = memory("a.sock")
      expect(outcome).to have_attributes(stderr: "", success?: true)
      expect(outcome.stdout).to start_with("a.sock: Process #{Process.pid}, 2026-11-23 07:00:00 UTC\n204 MiB resident")
        .and match(/^32\.0 MiB +16% +exact +free slots in Ruby's heap$/)
      expect(asked).to eq([true])
    end

    it "prints what can be told at a glance" do
      asked = serve
      expect(memory("--quick", "a.sock").stdout).to match(/^ *unknown +Ruby code/)
      expect(asked).to eq([false])
    end

    it "prints JSON and Markdown" do
      serve
      document = JSON.parse(memory("--format", "json", "a.sock").stdout)
      expect(document).to include("command" => "memory", "inputs" => ["a.sock"])
      expect(document["sections"].first).to include("input" => "a.sock", "pid" => Process.pid,
                                                    "rss_bytes" => 213_647_360, "lines" => be_an(Array))
      expect(memory("--format", "markdown", "--max-bytes", "600", "a.sock").stdout)
        .to start_with("# memprofiler memory\n").and have_attributes(bytesize: be <= 600)
    end

    it "reports that there is no process, and that something else answers" do
      UNIXServer.new("b.sock").close
      expect_failure(memory("b.sock"), "memprofiler: b.sock: nobody listens there: the process has ended\n")
      serve { '{"lines": 1}' }
      expect_failure(memory("a.sock"), /\Amemprofiler: a\.sock: this does not say where memory is/)
    end
  end

  describe "of an endpoint" do
    it "asks with headers and a process's id" do
      skip "Puma is not installed" unless HttpServer.available?

      asked = serve
      authorize = ->(env) { env["HTTP_X_TOKEN"] == "7" }
      endpoint = MemprofilerPprof::Rack::Endpoint.new(collector: profiler.collector, authorize: authorize)
      HttpServer.serve(Rack::Builder.app { map("/debug/pprof") { run endpoint } }) do |url|
        expect(memory("--quick", "--header", "X-Token: 7", "#{url}/debug/pprof?pid=#{Process.pid}").stdout)
          .to include("Process #{Process.pid}", "free slots")
        expect_failure(memory("#{url}/debug/pprof"), /: Not permitted.* \(status 403\)\n\z/)
      end
      expect(asked).to eq([false])
    end
  end

  describe "of several processes" do
    let(:other) { MemprofilerPprof::DefaultProfiler.new({}) }

    after { other.stop }

    before do
      Dir.mkdir("s")
      serve("s/a.sock")
      other.start(socket: "s/b.sock")
      RecordedMemory.answer_of(other.collector) { RecordedMemory.json(pid: 8, copied_bytes: 20_971_520) }
    end

    it "shows them side by side, whether a directory, a pattern or each is named" do
      tables = [["s"], ["s/%{pid}.sock"], ["s/a.sock", "s/b.sock"]].map { |arguments| memory(*arguments).stdout }
      expect(tables.uniq.size).to eq(1)
      expect(tables.first).to match(%r{\A2 processes\n.*^ *#{Process.pid} .* s/a\.sock\n *8 +204 MiB .* s/b\.sock$}m)
    end

    it "says who has not answered" do
      server = UNIXServer.new("s/c.sock")
      File.chmod(0o600, "s/c.sock")
      thread = Thread.new { server.accept.tap { |client| client.readpartial(99) }.close }
      expect(memory("s").stdout).to match(%r{\A2 processes\n.*\n\ns/c\.sock: the process has hung up\n\z}m)
      thread.join
    end
  end

  describe "of a file" do
    it "prints where the memory was" do
      record("a.pprof", **RecordedMemory.comments)
      expect(memory("a.pprof").stdout).to start_with("a.pprof: Process 4711, 2026-11-23 07:00:00 UTC\n204 MiB resid")
    end

    it "takes the newest in a directory, by default tmp/profiles" do
      record("tmp/profiles/old.pprof", **RecordedMemory.comments(pid: 1))
      record("tmp/profiles/new.pb.gz", **RecordedMemory.comments(pid: 2))
      %w[new.retainers.pprof old.peak.pprof].each { |name| record("tmp/profiles/#{name}") }
      FileUtils.touch("tmp/profiles/note.txt")
      File.utime(0, 0, "tmp/profiles/old.pprof")
      outputs = [memory, memory("tmp/profiles")].map(&:stdout)
      expect(outputs).to all(start_with("tmp/profiles/new.pb.gz: Process 2, "))
    end

    it "takes the newest that says where the memory was" do
      record("p/old.pprof", **RecordedMemory.comments(pid: 1))
      record("p/mem-oom.pprof", emergency: "written without the GVL")
      File.utime(0, 0, "p/old.pprof")
      expect(memory("p").stdout).to start_with("p/old.pprof: Process 1, ")
    end

    it "reads it from stdin" do
      record("a.pprof", **RecordedMemory.comments)
      outcome = run_command("sh", "-c", 'exec "$@" <a.pprof', "sh", *SubprocessHelpers::MEMPROFILER, "memory", "-")
      expect(outcome.stdout).to start_with("stdin: Process 4711, ")
    end

    it "reports that what it says of memory has a wrong form" do
      record("a.pprof", memory: '{"lines":[],"attached_at":5}')
      expect_failure(memory("a.pprof"), "memprofiler: a.pprof: the profile does not say where the memory was\n")
    end

    it "reports that it is missing, or says nothing of memory" do
      expect_failure(memory("none.pprof"), "memprofiler: none.pprof: No such file or directory\n")
      record("a.pprof")
      expect_failure(memory("a.pprof"), "memprofiler: a.pprof: the profile does not say where the memory was\n")
      Dir.mkdir("p")
      expect_failure(memory("p"), "memprofiler: p: no process listens on a socket there, and there is no profile\n")
    end
  end

  it "says what it needs if nothing is named, and no profiles are here" do
    expect_failure(memory, "memprofiler: neither a file nor a process named, and there is no tmp/profiles, see " \
                           "memprofiler memory --help\n")
  end

  it "refuses options that it has not" do
    expect_failure(memory("--by", "line", "a"), /unknown option --by/)
  end
end
