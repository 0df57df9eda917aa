# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/rack"
require "tmpdir"

RSpec.describe "memprofiler why", :threads do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:profiler) { MemprofilerPprof::DefaultProfiler.new({}) }

  after { profiler.stop }

  def cli(*arguments, **keywords)
    run_command(*SubprocessHelpers::MEMPROFILER, *arguments, **keywords)
  end

  def why(...)
    cli("why", ...)
  end

  def expect_failure(outcome, message)
    expect(outcome).to have_attributes(status: have_attributes(exitstatus: 2), stdout: "", stderr: message)
  end

  # This process is the one that is asked.
  # @return [Array] what it was asked
  def serve(socket = "a.sock", &)
    profiler.start(socket: socket)
    RecordedRetainers.answer_of(profiler.collector, &)
  end

  def record(name, **options)
    FileUtils.mkdir_p(File.dirname(name))
    File.binwrite(name, RecordedRetainers.pprof(**options))
    name
  end

  describe "of a socket" do
    it "prints who holds what" do
      serve
      outcome = why("a.sock")
      expect(outcome).to have_attributes(stderr: "", success?: true)
      expect(outcome.stdout).to start_with("a.sock: Process #{Process.pid}, 2026-11-22 21:52:13 UTC\n1.02 M objects")
        .and match(/^ +@cards → Hash \(6,724\) +retains 38\.9 MiB$/)
    end

    it "passes the question on" do
      asked = serve
      why("--site", "app/a b.rb:7", "--class", "Foo::Bär", "--limit", "3", "--timeout", "9", "--in-process", "a.sock")
      expect(asked).to eq([["app/a b.rb:7", "Foo::Bär", 3, true, 9]])
    end

    it "asks by itself for ten sites, for a minute" do
      asked = serve
      why("a.sock")
      expect(asked).to eq([[nil, nil, 10, false, 60]])
    end

    it "prints JSON and Markdown" do
      serve
      section = JSON.parse(why("--json", "a.sock").stdout)["sections"].first
      expect(section).to include("pid" => Process.pid, "input" => "a.sock")
      expect(section["findings"].first["holders"].first["phrase"]).to eq("ProductCardCache.@cards → Hash (6,724)")
      expect(why("--format", "markdown", "--max-bytes", "600", "a.sock").stdout)
        .to start_with("# memprofiler why\n").and have_attributes(bytesize: be <= 600)
    end

    it "writes the paths for other tools, too" do
      serve
      outcome = why("--output", "b.pprof", "--json", "a.sock")
      expect(outcome.stderr).to eq("memprofiler why: wrote b.pprof\n")
      expect(JSON.parse(outcome.stdout)["command"]).to eq("why")
      expect([File.binread("b.pprof"), File.stat("b.pprof").mode & 0o777]).to eq([RecordedRetainers.pprof, 0o600])
    end

    it "writes the paths to stdout, and nothing else" do
      serve
      outcome = why("-o", "-", "a.sock")
      expect([outcome.stdout.b, outcome.stderr]).to eq([RecordedRetainers.pprof, ""])
    end

    it "says why it is refused" do
      serve { raise MemprofilerPprof::RetainersError, "There are other Ractors: end them." }
      expect_failure(why("a.sock"), "memprofiler: a.sock: There are other Ractors: end them.\n")
    end

    it "reports that there is no process, and that a file cannot be written" do
      UNIXServer.new("b.sock").close
      expect_failure(why("b.sock"), "memprofiler: b.sock: nobody listens there: the process has ended\n")
      serve
      expect_failure(why("-o", "none/b.pprof", "a.sock"), "memprofiler: none/b.pprof: No such file or directory\n")
    end

    # The answer of a server in the process's place.
    def answer_with(body)
      server = UNIXServer.new("a.sock")
      thread = Thread.new do
        client = server.accept
        client.readpartial(99)
        client.write("HTTP/1.0 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n".b << body.b)
        client.close
      end
      why("a.sock").tap { thread.join }
    ensure
      server.close
      File.unlink("a.sock")
    end

    it "reports that something else answers" do
      join = MemprofilerPprof::OnDemand.method(:join)
      pprof = RecordedRetainers.pprof
      bodies = ["", "abc", "hello, world", join.call("{", pprof), join.call("[1]", pprof), join.call("{}", pprof)]
      expect(bodies.map { |body| answer_with(body).stderr })
        .to all(match(/\Amemprofiler: a\.sock: (no answer came|no profile came: .*)\n\z/))
    end
  end

  describe "of an endpoint" do
    it "asks with headers and a process's id" do
      skip "Puma is not installed" unless HttpServer.available?

      serve
      authorize = ->(env) { env["HTTP_X_TOKEN"] == "7" }
      endpoint = MemprofilerPprof::Rack::Endpoint.new(collector: profiler.collector, authorize: authorize)
      HttpServer.serve(Rack::Builder.app { map("/debug/pprof") { run endpoint } }) do |url|
        File.write("headers", "X-Other: 1\nX-Token: 7\n")
        ["X-Token: 7", "@headers"].each do |header|
          expect(why("--header", header, "#{url}/debug/pprof?pid=#{Process.pid}").stdout)
            .to include("Process #{Process.pid}", "@cards → Hash")
        end
        expect_failure(why("#{url}/debug/pprof"), /: Not permitted.* \(status 403\)\n\z/)
      end
    end
  end

  describe "of a directory" do
    it "asks each process with a socket there" do
      Dir.mkdir("s")
      serve("s/a.sock")
      UNIXServer.new("s/stale.sock").close
      expect(why("s").stdout).to start_with("s/a.sock: Process #{Process.pid}")
      expect(why("s/%{pid}.sock").stdout).to start_with("s/a.sock: Process #{Process.pid}")
    end

    it "says who has not answered" do
      Dir.mkdir("s")
      serve("s/a.sock")
      server = UNIXServer.new("s/b.sock")
      File.chmod(0o600, "s/b.sock")
      thread = Thread.new { server.accept.tap { |client| client.readpartial(99) }.close }
      expect(why("s").stdout).to match(%r{\As/a\.sock: Process .*\n\ns/b\.sock: the process has hung up\n\z}m)
      thread.join
    end

    it "adds up the paths of all" do
      Dir.mkdir("s")
      serve("s/a.sock")
      other = MemprofilerPprof::DefaultProfiler.new({})
      other.start(socket: "s/b.sock")
      RecordedRetainers.answer_of(other.collector)
      expect(why("-o", "sum.pprof", "s").stdout.scan(%r{^s/.\.sock})).to eq(%w[s/a.sock s/b.sock])
      expect(MemprofilerPprof::Profile.load("sum.pprof").total.value).to eq(2 * 36_606_000)
    ensure
      other&.stop
    end

    it "reads the newest recording where there is no process" do
      record("p/old.retainers.pprof", comments: { kind: "retainers", pid: 1 })
      record("p/new.retainers.pprof", comments: { kind: "retainers", pid: 2 })
      File.utime(0, 0, "p/old.retainers.pprof")
      expect(why("p").stdout).to start_with("p/new.retainers.pprof: Process 2, ")
      expect(why("p/old*").stdout).to start_with("p/old.retainers.pprof: Process 1, ")
    end

    it "is tmp/profiles if nothing is named" do
      record("tmp/profiles/mem-1.retainers.pprof")
      expect(why.stdout).to start_with("tmp/profiles/mem-1.retainers.pprof: Process 4711, ")
    end

    it "says what it needs if nothing is named, and no files are here" do
      expect_failure(why, "memprofiler: neither a file nor a process named, and there is no tmp/profiles, see " \
                          "memprofiler why --help\n")
    end

    it "says that there is nothing" do
      Dir.mkdir("p")
      expect_failure(why("p"), "memprofiler: p: no process listens on a socket there, and there is no " \
                               "*.retainers.pprof\n")
    end
  end

  describe "of a file" do
    it "prints the paths in it" do
      record("a.pprof")
      outcome = why("--site", "audit.rb:7", "a.pprof")
      expect(outcome.stdout.scan(/allocated at (\S+)/)).to eq([["/srv/shop/app/models/audit.rb:7"]])
      expect(outcome.stdout).to include("  67% held by\n", "      Array → elements → String\n")
    end

    it "reads it from stdin" do
      record("a.pprof")
      outcome = run_command("sh", "-c", 'exec "$@" <a.pprof', "sh", *SubprocessHelpers::MEMPROFILER, "why", "-")
      expect(outcome.stdout).to start_with("stdin: Process 4711, ")
    end

    it "reports that it is missing, broken, or another kind of profile" do
      expect_failure(why("none.pprof"), "memprofiler: none.pprof: No such file or directory\n")
      File.binwrite("broken.pprof", "nonsense")
      expect_failure(why("broken.pprof"), /\Amemprofiler: broken\.pprof: not a valid pprof profile/)
      File.binwrite("heap.pprof", Pprof::Maker.lines({ "/a.rb:1" => [0, 1] }).to_s)
      expect_failure(why("heap.pprof"), "memprofiler: heap.pprof: not a profile of references, as `why` writes them\n")
    end
  end

  { %w[a b] => /at most one argument is needed, got 2/, %w[--limit 0 a] => /--limit 0, must be in 1\.\.1000/,
    %w[--timeout 601 a] => /--timeout 601, must be in 1\.\.600/, %w[--by line a] => /unknown option --by/ }
    .each do |arguments, message|
    it "refuses #{arguments.join(" ")}" do
      expect_failure(why(*arguments), message)
    end
  end

  describe "its files, to other commands" do
    before { record("tmp/profiles/mem-7-1.retainers.pprof") }

    it "are profiles of their own" do
      file = Dir["tmp/profiles/*"].first
      expect(cli("report", "--by", "method", file).stdout).to include("ProductCardCache.@cards → Hash")
      expect(cli("diff", file, file)).to be_success
      expect(cli("flamegraph", "-o", "a.html", file).stdout).to eq("a.html\n")
      expect(File.read("a.html")).to include("ProductCardCache.@cards → Hash")
    end

    it "are not taken for profiles of the heap" do
      2.times do |index|
        profile = Pprof::Maker.lines({ "/a.rb:1" => [0, 100] }, time: 1_000_000_000 + index, comments: { pid: 7 })
        File.binwrite("tmp/profiles/mem-7-#{index}.pprof", profile.to_s)
      end
      expect(cli("report", "tmp/profiles").stdout).to start_with("2 profiles, ")
      expect(cli("report", *Dir["tmp/profiles/*"]).stdout).to start_with("2 profiles, ")
      expect(cli("report").stderr).to include("the newest of 2 profiles")
      expect(cli("leaks").stdout).to start_with("Process 7: 2 profiles, ")
      expect(cli("flamegraph", "-o", "a.html", "tmp/profiles")).to be_success
    end

    it "are no series" do
      FileUtils.mv(Dir["tmp/profiles/*"].first, "a.pprof")
      expect_failure(cli("leaks", "a.pprof", "a.pprof"),
                     "memprofiler: a.pprof: is a profile of references, see why --help\n")
    end
  end
end
