# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/rack"
require "socket"
require "tmpdir"

RSpec.describe "memprofiler top" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  after do
    programs.each { |pid| finish(pid) }
    servers.each { |thread| thread.kill.join }
  end

  let(:memprofiler) { SubprocessHelpers::MEMPROFILER }
  let(:programs) { [] }
  let(:servers) { [] }
  # Keeps 100 objects of one class, and goes on allocating another.
  let(:program) do
    "class Kept; end; class Lost; end; KEPT = Array.new(100) { Kept.new }\n" \
      "$stdout.syswrite('.'); loop { 50.times { Lost.new }; sleep 0.01 }"
  end

  def finish(pid)
    Process.kill(:KILL, pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  end

  # Starts a profiled program that serves its profiles.
  def start(code = program, socket: "a.sock")
    reader, writer = IO.pipe
    programs << spawn({ "RUBYOPT" => nil }, *memprofiler, "run", "--socket", socket, "--rate", "1", "--interval",
                      "1000", "--", RbConfig.ruby, "-e", code, out: writer)
    writer.close
    reader.read(1)
    programs.last
  end

  # A server in the program's place. Returns a queue of its requests, and one of the answers that it is to give.
  def serve(*profiles)
    server = UNIXServer.new("a.sock")
    requests = Queue.new
    answers = Queue.new
    profiles.each { |profile| answers << profile }
    servers << Thread.new { loop { server.accept.then { |client| answer(client, requests, answers) } } }
    [requests, answers]
  end

  def answer(client, requests, answers)
    requests << client.readpartial(99)
    answer = answers.pop.to_s
    client.write("HTTP/1.0 200 OK\r\nContent-Length: #{answer.bytesize}\r\n\r\n".b << answer)
  rescue EOFError, Errno::EPIPE, Errno::ECONNRESET
    # The client has disconnected.
    nil
  ensure
    client.close
  end

  # 100 retained objects of one class, and allocations of another.
  def profile(time: 1, **options)
    Pprof::Maker.new(time: time, duration: 1, comments: { pid: 7 }, **options)
                .sample(["keep /a.rb:1"], [0, 0, 100, 4000], "Kept").sample(["lose /a.rb:2"], [50, 2000, 0, 0], "Lost")
  end

  def top(*arguments, env: {})
    run_command(*memprofiler, "top", *arguments, env: { "COLUMNS" => nil, "NO_COLOR" => nil }.merge(env))
  end

  describe "without a terminal" do
    it "prints one table" do
      pid = start
      outcome = top("a.sock")
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
      expect(outcome.stdout).to start_with("a.sock, pid #{pid}\nExplains ")
        .and match(%r{^Allocates .* objects/s.*\nRetains   .* objects.*\n\n +\*ALLOC/S +95% INTERVAL .* CLASS\n})
        .and match(/^ +[\d,]+ .* Lost$/).and match(/^ +- .* 100 .* Kept$/)
    end

    it "prints JSON" do
      start
      outcome = top("--json", "--by", "line", "--sort", "objects", "--limit", "3", "a.sock")
      expect(JSON.parse(outcome.stdout)["top"])
        .to include("by" => "line", "sort" => "objects", "sites" => have_attributes(size: 3))
    end

    it "filters" do
      start
      expect(top("--tag", "class=Kept", "a.sock").stdout.lines.last(2)).to match([/ CLASS$/, / Kept$/])
    end

    it "counts over the interval" do
      requests, = serve(profile)
      json = JSON.parse(top("--interval", "2", "--json", "a.sock").stdout)
      expect([requests.pop, json.dig("top", "seconds")]).to match([%r{\AGET /heap\?seconds=2 }, 1.0])
    end

    it "prints what uses CPU time" do
      start("def work = 1000.times { nil }\n$stdout.syswrite('.'); loop { work }")
      expect(top("--cpu", "--by", "method", "--interval", "1", "a.sock").stdout)
        .to match(/\Aa.sock, CPU time of 1 s\ncpu: .* m?s .*by method\n\n.* METHOD\n(.*\n)*.*  Object#work  /)
      json = JSON.parse(top("--cpu", "--json", "a.sock").stdout)
      expect(json.dig("top", "type")).to eq("name" => "cpu", "unit" => "nanoseconds")
    end

    it "prints the CPU time of one process only" do
      expect(top("--cpu", ".")).to have_attributes(stderr: /--cpu takes the socket of one process, got \.$/)
    end

    it "asks an endpoint, with headers" do
      skip "Puma is not installed" unless HttpServer.available?

      collector = new_collector(sample_rate: 1.0).start
      authorize = ->(env) { env["HTTP_X_TOKEN"] == "7" }
      endpoint = MemprofilerPprof::Rack::Endpoint.new(collector: collector, authorize: authorize)
      app = Rack::Builder.app { map("/debug/pprof") { run endpoint } }
      HttpServer.serve(app) do |url|
        expect(top("--header", "X-Token: 7", "#{url}/debug/pprof/").stdout).to include("pid #{Process.pid}", " CLASS")
        expect(top("--header", "X-Token: 7", "#{url}/debug/pprof?pid=1").stderr).to include("There is no process 1")
        expect(top("#{url}/debug/pprof").stderr).to match(%r{/debug/pprof: Not permitted.* \(status 403\)\n})
      end
    end

    describe "of a directory" do
      # Lets processes answer once.
      def serve_all(answers)
        Dir.mkdir("s")
        answers.each do |name, answer|
          server = UNIXServer.new("s/#{name}")
          File.chmod(0o600, "s/#{name}")
          queue = Queue.new << answer
          servers << Thread.new { answer(server.accept, Queue.new, queue) }
        end
        UNIXServer.new("s/stale.sock").close
        File.write("s/file.sock", "")
      end

      it "prints a row for each process, and their sums" do
        serve_all("a.sock" => profile, "b.sock" => profile(time: 2).sample(["x /a.rb:3"], [0, 0, 20, 800], "More"))
        outcome = top("--sort", "objects", "s")
        expect(outcome.stderr).to eq("")
        expect(outcome.stdout.lines.map(&:rstrip))
          .to match(["s, 2 processes", "", /\APID .* \*OBJECTS +RETAINED +MOST OF \*\z/, / 7 +~50 .* 120 .* Kept\z/,
                     / 7 +~50 .* 100 .* Kept\z/, /\Aall +100 .* 220 +8\.59 KiB\z/])
      end

      it "prints JSON, and why a process is missing" do
        serve_all("a.sock" => profile, "b.sock" => "nonsense")
        json = JSON.parse(top("--json", "s/%{pid}.sock").stdout)
        expect(json["processes"].map { |row| row.values_at("address", "problem", "totals") })
          .to match([["s/a.sock", nil, include("pid" => 7)], ["s/b.sock", /no profile came/, nil]])
      end

      it "says that there is no process" do
        serve_all({})
        expect_failure(top("s"), 2, "memprofiler: s: no process listens on a socket there\n")
      end
    end

    def expect_failure(outcome, status, message)
      expect(outcome).to have_attributes(status: have_attributes(exitstatus: status), stdout: "", stderr: message)
    end

    it "reports that there is no process" do
      expect_failure(top("none.sock"), 2,
                     "memprofiler: none.sock: there is no socket; does the program run with --socket?\n")
      UNIXServer.new("a.sock").close
      expect_failure(top("a.sock"), 2, "memprofiler: a.sock: nobody listens there: the process has ended\n")
      expect_failure(top("http://127.0.0.1:1"), 2, "memprofiler: http://127.0.0.1:1: Connection refused\n")
    end

    it "reports that a URL is not that of the endpoint", :aggregate_failures do
      message = "this is no profile; the URL must be that of the endpoint, such as http://127.0.0.1:3000/debug/pprof"
      FakeHttpServer.run(200) do |server|
        %w[top dump memory why].each do |command|
          expect_failure(run_command(*memprofiler, command, server.url), 2,
                         "memprofiler: #{server.url}: #{message}\n")
        end
      end
    end

    it "reports a wrong URL" do
      expect_failure(top("http://foo bar/"), 2, "memprofiler: http://foo bar/: not a valid URL\n")
      expect_failure(top("http:///heap"), 2, "memprofiler: http:///heap: the URL names no host\n")
    end

    it "reports that something else answers" do
      server = UNIXServer.new("a.sock")
      answers = ["", "hello", "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
                 "HTTP/1.0 500 Oh\r\nContent-Length: 4\r\n\r\n\e[2J"]
      thread = Thread.new do
        answers.each { |answer| server.accept.tap { |io| io.readpartial(99) && io.write(answer) }.close }
      end
      expect(answers.map { top("a.sock").stderr.chomp.delete_prefix("memprofiler: a.sock: ") })
        .to match(["the process has hung up", "the process has hung up", /\Ano profile came: /,
                   "(status 500)"])
      thread.join
    end

    {
      "SSH-2.0-x\r\n" => /\Awrong status line: .* \(Net::HTTPBadResponse\)\Z/,
      "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n" => /\Awrong Content-Length format .*SyntaxError\)\Z/,
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc" => /\A.* \(Zlib::\w+Error\)\Z/
    }.each do |answer, message|
      it "reports that #{answer.inspect} comes from a URL" do
        server = TCPServer.new("127.0.0.1", 0)
        thread = Thread.new { server.accept.tap { |io| io.readpartial(99) && io.write(answer) }.close }
        url = "http://127.0.0.1:#{server.addr[1]}"
        outcome = top(url)
        expect(outcome.stderr.delete_prefix("memprofiler: #{url}: ")).to match(message)
        expect(outcome.status.exitstatus).to eq(2)
        thread.join
      end
    end

    {
      [] => "exactly one PID, socket or URL is needed, got 0, see memprofiler top --help\n",
      %w[a b] => "exactly one PID, socket or URL is needed, got 2; put a pattern into quotes, see memprofiler top --h",
      %w[--interval 61 a] => "invalid argument: --interval 61, must be in 1..60",
      %w[--header x a] => "invalid argument: --header x, must be NAME: VALUE",
      %w[--header @none a] => "invalid argument: --header @none: No such file or directory",
      %w[--sort name a] => "invalid argument: --sort name, must be allocations, allocated_bytes, objects or bytes, see"
    }.each do |arguments, message|
      it "refuses #{arguments.join(" ").inspect}" do
        expect_failure(top(*arguments), 2, start_with("memprofiler: #{message}"))
      end
    end
  end

  describe "in a terminal" do
    around do |example|
      skip "tmux is not installed" unless Tmux.available?
      Tmux.open { |terminal| (@terminal = terminal) && example.run }
    end

    attr_reader :terminal

    def wait_for(pattern)
      wait_until(what: "#{pattern.inspect} on the screen") { terminal.text.match?(pattern) }
    end

    def open_top(*options, socket: "a.sock")
      wait_for(/^\$/)
      @before = [terminal.state, terminal.modes]
      terminal.run(*memprofiler, "top", *options, socket)
      wait_for(/pid \d+  \d\d:\d\d:\d\d/)
    end

    def rows
      terminal.text.lines.drop_while { |line| !line.include?("ALLOC/S") }.drop(1).map(&:strip).reject(&:empty?)[0...-1]
    end

    it "shows classes, and new figures each second" do
      start
      open_top
      expect(terminal.text).to match(/\A\$? ?a\.sock  every 1 s  pid/).and match(%r{^Allocates .* objects/s})
        .and match(/^ +[\d,]+ .* Lost$/).and match(/ 100 .* Kept$/).and match(/^q quit/)
      expect(terminal.state).to eq("1 0 0")
      expect(terminal.styled_text).to match(/\e\[1m +\*ALLOC/)
      times = Array.new(2) { terminal.text[/\d\d:\d\d:\d\d/].tap { |time| wait_for(/pid \d+  (?!#{time})/) } }
      expect(times.uniq.size).to eq(2)
    end

    it "shows what uses CPU time, and new figures each second" do
      start("def work = 1000.times { nil }\n$stdout.syswrite('.'); loop { work }")
      open_top("--cpu", "--by", "method")
      expect(terminal.text).to match(/^CPU time of the last \S+ m?s: /).and match(/^ .*%  Object#work  /)
      first = terminal.text[/last \S+/]
      wait_until(what: "another interval") { terminal.text[/last \S+/] != first }
      terminal.press("Right")
      wait_for(/\*WITH CALLS/)
    end

    it "changes what it shows by keys" do
      serve(profile)
      open_top
      terminal.press("Tab")
      wait_for(/by line/)
      terminal.press("Right", "Right")
      wait_for(/\*OBJECTS/)
      terminal.press("Left")
      wait_for(%r{\*BYTES/S})
      terminal.press("BTab", "F5", "x", "Tab")
      wait_for(/by method/)
    end

    it "pauses and resumes" do
      requests, answers = serve(profile)
      open_top
      terminal.press("p")
      wait_for(/PAUSED/)
      # The next one was requested before, and comes too late. After it nothing is requested, as live_spec.rb shows.
      answers << profile(time: 60)
      terminal.press("p")
      wait_until { requests.size == 3 && !terminal.text.include?("PAUSED") }
      answers << profile(time: 120)
      wait_for(/:02:00$/)
    end

    it "filters as you type" do
      serve(profile)
      open_top
      terminal.press("/")
      terminal.type("kepq")
      terminal.press("BSpace")
      wait_for(/^Filter: kep_/)
      expect(rows).to match([/ Kept$/])
      terminal.press("Enter")
      wait_for(/matching kep/)
      terminal.press("/")
      terminal.type("[")
      wait_for(/0-0 of 0/)
      terminal.press("Escape")
      wait_for(/1-1 of 1 by class/)
      terminal.press("Escape")
      wait_for(/1-\d+ of (?!1 )\d+ by class/)
    end

    # A server that has one profile, and then none. Returns a queue of the questions who holds what, which it answers
    # when there is something in the other queue.
    def serve_holders
      server = UNIXServer.new("a.sock")
      questions = Queue.new
      gate = Queue.new
      profiles = Queue.new << profile.to_s
      servers << Thread.new { loop { serve_in_thread(server.accept, profiles, questions, gate) } }
      [questions, gate]
    end

    def serve_in_thread(client, profiles, questions, gate)
      servers << Thread.new do
        request = client.readpartial(99)
        asks = request.include?("/retainers")
        questions << request if asks
        body = asks ? gate.pop : profiles.pop
        client.write("HTTP/1.0 200 OK\r\nContent-Length: #{body.bytesize}\r\n\r\n".b << body)
        client.close
      end
    end

    it "asks who holds the objects of a row" do
      questions, gate = serve_holders
      open_top("--by", "line")
      terminal.press("w")
      wait_for(/^> .*a\.rb:2 /)
      terminal.press("Down")
      wait_for(/^> .*a\.rb:1 /)
      terminal.press("Enter")
      wait_for(%r{^Asking who holds /a\.rb:1 })
      expect(questions.pop).to start_with("GET /retainers?site=/a.rb:1&format=both ")
      gate << MemprofilerPprof::OnDemand.join(RecordedRetainers.json, RecordedRetainers.pprof)
      # Not all terminals have arrows.
      wait_for(/@cards .* Hash \(6,724\) +retains 38\.9 MiB/)
      terminal.press("Escape")
      wait_for(/ALLOC/)
    end

    it "scrolls" do
      kinds = Array.new(60) { |i| "K#{i}" }
      serve(kinds.reduce(profile) { |all, kind| all.sample(["make /a.rb:3"], [1, 40, 1, 40], kind) })
      open_top
      last = terminal.text[/^1-(\d+) of 62 by class/, 1].to_i
      terminal.press("NPage")
      wait_for(/^#{last + 1}-\d+ of/)
      terminal.press("Up")
      wait_for(/^#{last}-\d+ of/)
      terminal.press("Home", "Down")
      wait_for(/^2-\d+ of/)
    end

    it "follows the terminal's size" do
      # Nothing else makes it redraw: there is no second answer.
      serve(profile)
      open_top
      [[10, 60], [5, 40], [30, 150]].each do |lines, columns|
        terminal.resize(lines, columns)
        wait_until { terminal.text.lines.size == lines && terminal.text.lines.last.start_with?("q quit") }
      end
      wait_for(/95% INTERVAL .*95% INTERVAL .*95% INTERVAL/)
    end

    it "fills lines up to the last column" do
      columns = Tmux::SIZE.last
      serve(profile)
      open_top(socket: "a.sock".rjust(columns - "  every 1 s  pid 7  00:00:01".size, "./"))
      expect(terminal.text.lines.first.chomp.size).to eq(columns)
    end

    it "reports that the process is gone, and continues with the next one" do
      pid = start
      open_top
      finish(pid)
      wait_for(/a\.sock .* (nobody listens there|has hung up)/)
      pid = start
      wait_for(/pid #{pid}  \d\d:\d\d:\d\d$/)
    end

    it "shows all processes of a directory as they come and go, and the chosen one" do
      Dir.mkdir("s")
      pids = %w[s/a.sock s/b.sock].map { |socket| start(socket: socket) }
      terminal.run(*memprofiler, "top", "s")
      wait_for(/\As  every 1 s  2 processes  \d\d:\d\d:\d\d/)
      expect(pids).to all(satisfy { |pid| terminal.text.match?(/^ *(> )? *#{pid} .* MiB  Lost$/) })
      terminal.press("Enter")
      wait_for(%r{\As/[ab]\.sock  every 1 s  pid (#{pids.join("|")})  .*^Backspace all}m)
      terminal.press("BSpace")
      start(socket: "s/c.sock")
      wait_for(/ 3 processes /)
      finish(pids.first)
      wait_for(/ 2 processes /)
      expect(terminal.text).not_to match(/^ *(> )? *#{pids.first} /)
    end

    it "reports immediately, on the previous screen, that there is no process" do
      terminal.run(*memprofiler, "top", "a.sock")
      wait_for(/^memprofiler: a.sock: there is no socket/)
      expect(terminal.state).to eq("0 1 1")
    end

    describe "is as it was" do
      def leave(status)
        yield
        wait_for(/^(left )?\$ *$|^\[1\]\+/)
        wait_until { terminal.state == @before.first && terminal.modes == @before.last }
        terminal.type("echo status $?.")
        terminal.press("Enter")
        wait_for(/^status #{status}\./)
      end

      before do
        serve(profile)
        open_top
        expect([terminal.state, terminal.modes]).not_to eq(@before)
      end

      it "after Ctrl-C" do
        leave(0) { terminal.press("C-c") }
      end

      { TERM: 143, HUP: 129 }.each do |signal, status|
        it "after SIG#{signal}" do
          leave(status) { Process.kill(signal, terminal.foreground) }
        end
      end

      it "while it is stopped, and after q" do
        leave(147) { terminal.press("C-z") }
        terminal.run("fg")
        wait_until { terminal.state == "1 0 0" }
        leave(0) { terminal.press("q") }
      end

      it "while it is stopped by a signal" do
        leave(147) { Process.kill(:TSTP, terminal.foreground) }
        terminal.run("fg")
        wait_for(/pid \d+  \d\d:\d\d:\d\d/)
        leave(0) { terminal.press("q") }
      end
    end

    it "is as it was after an exception" do
      serve(Pprof::Maker.lines({ "/a.rb:1" => [1, 1] }, duration: 0))
      terminal.run(*memprofiler, "top", "a.sock")
      wait_for(/the profile does not say how many seconds it covers/)
      expect(terminal.state).to eq("0 1 1")
    end
  end
end
