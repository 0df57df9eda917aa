# frozen_string_literal: true

require "ruby_memprofiler_pprof/pyroscope"

RSpec.describe MemprofilerPprof::Pyroscope, :threads do
  let(:logger) { FakeLogger.new }
  # The seconds between attempts; nobody actually waits here.
  let(:waits) { [] }
  let(:profile) { new_collector(sample_rate: 1.0, sample_type_names: :go).profile { Array.new(3) { Object.new } } }

  def uploader(url, **options)
    allow(described_class::Delivery).to receive(:new).and_wrap_original do |original, *arguments, **keywords|
      original.call(*arguments, **keywords).tap do |delivery|
        allow(delivery).to receive(:sleep) { |seconds| waits << seconds }
      end
    end
    described_class.new(url: url, app_name: "shop", timeout: 60, exit_timeout: 60, logger: logger, **options)
  end

  # Sends profiles to a server with these responses; returns its requests, and the uploader.
  def send_to(*answers, number: 1, **options)
    FakeHttpServer.run(*answers) do |server|
      pyroscope = uploader(server.url, **options)
      number.times { pyroscope.call(profile) }
      pyroscope.drain
      yield server.requests, pyroscope
    ensure
      pyroscope&.stop!(0.1)
    end
  end

  describe "#call" do
    it "posts the profile as Pyroscope's raw pprof" do
      send_to(200) do |requests, pyroscope|
        request = requests.first
        expect([request.verb, request.path]).to eq(["POST", "/ingest"])
        expect(request.query).to include("name" => "shop{}", "format" => "pprof", "spyName" => "ruby_memprofiler_pprof")
        expect(request.headers).to include("content-type" => "application/octet-stream")
        expect(request.body.b).to eq(profile.pprof_data)
        expect(pyroscope.stats).to eq({ sent: 1, dropped: 0, failed: 0, waiting: 0 })
      end
    end

    it "sends the interval, widened to whole seconds" do
      send_to(200) do |requests, _|
        from, till = requests.first.query.values_at("from", "until").map { |text| Integer(text) }
        nanos = profile.time_nanos
        expect(from).to eq((nanos - profile.duration_nanos) / 1_000_000_000)
        expect(till).to eq((nanos / 1e9).ceil)
        expect(from).to be < till
      end
    end

    it "adds tags to the name, which may be computed each time" do
      number = 0
      tags = { env: "prod", "pod" => -> { number += 1 } }
      send_to(200, number: 2, tags: tags) do |requests, _|
        expect(requests.map { |request| request.query["name"] }).to eq(["shop{env=prod,pod=1}", "shop{env=prod,pod=2}"])
      end
    end

    it "sends a token, or user and password, and the tenant" do
      send_to(200, auth_token: "secret", tenant_id: "team-1") do |requests, _|
        expect(requests.first.headers).to include("authorization" => "Bearer secret", "x-scope-orgid" => "team-1")
      end
      send_to(200, basic_auth: %w[user pass]) do |requests, _|
        expect(requests.first.headers).to include("authorization" => "Basic #{["user:pass"].pack("m0")}")
      end
    end

    it "keeps the path and query of the URL" do
      FakeHttpServer.run(200) do |server|
        pyroscope = uploader("#{server.url}/pyroscope/?org=1")
        pyroscope.call(profile)
        pyroscope.drain
        expect(server.requests.first).to have_attributes(path: "/pyroscope/ingest",
                                                         query: include("org" => "1", "name" => "shop{}"))
      ensure
        pyroscope.stop!
      end
    end

    it "tries again when the server fails, waiting longer each time" do
      send_to(500, 503, 429, 200) do |requests, pyroscope|
        expect(pyroscope.stats).to include(sent: 1, failed: 0)
        expect(requests.map { |request| request.body.b }).to eq([profile.pprof_data] * 4)
        # Half to one and a half times 1, 2 and 4 s.
        expect(waits).to match([be_between(0.5, 1.5), be_between(1, 3), be_between(2, 6)])
        expect(logger[:error]).to eq([])
      end
    end

    it "waits as long as the server says" do
      send_to([503, { "Retry-After" => "7" }], 200) { expect(waits).to eq([7]) }
    end

    it "waits until the date that the server names" do
      now = Time.at(1_000_000_000)
      allow(Time).to receive(:now).and_return(now)
      send_to([503, { "Retry-After" => (now + 30).httpdate }], 200) { expect(waits).to eq([30]) }
    end

    it "waits no longer than a minute, whatever the server demands" do
      send_to([503, { "Retry-After" => "3600" }], 200) { expect(waits).to eq([60]) }
    end

    it "waits as usual if the server's answer is neither a number nor a date" do
      send_to([503, { "Retry-After" => "soon" }], 200) { expect(waits).to match([be_between(0.5, 1.5)]) }
    end

    it "sleeps between attempts" do
      pyroscope = described_class.new(url: "http://127.0.0.1:1", app_name: "shop", retries: 1, retry_wait: 0.1,
                                      logger: logger)
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      pyroscope.call(profile)
      pyroscope.drain(60)
      expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to be >= 0.05
    ensure
      pyroscope.stop!
    end

    it "gives up eventually, says so, and continues with the next" do
      send_to(500, 500, 500, 200, number: 2, retries: 2) do |requests, pyroscope|
        expect(requests.size).to eq(4)
        expect(pyroscope.stats).to include(sent: 1, failed: 1)
        expect(logger[:error]).to match([/not sent, after 3 attempts: status 500: So body/])
      end
    end

    [400, 401, 403, 413, 422, 301].each do |status|
      it "does not try again after a #{status}" do
        send_to(status) do |requests, pyroscope|
          expect(requests.size).to eq(1)
          expect(pyroscope.stats).to include(failed: 1)
          expect(logger[:error]).to match([/not sent, after 1 attempt: status #{status}/])
        end
      end
    end

    it "tries again when the server does not answer in time" do
      # The response may be late anyway if the machine is busy.
      send_to(:hang, 200, timeout: 0.2, retries: 1000) do |requests, pyroscope|
        expect(requests.size).to be >= 2
        expect(pyroscope.stats).to include(sent: 1)
      end
    end

    it "gives an attempt up in time, although the server goes on answering" do
      send_to(:drip, timeout: 0.2, retries: 0) do |_, pyroscope|
        expect(pyroscope.stats).to include(failed: 1)
        expect(logger[:error]).to match([/not sent, after 1 attempt: Timeout::Error: no answer within 0.2 s\z/])
      end
    end

    it "needs no more than the status of a server that accepts the profile" do
      send_to("HTTP/1.1 200 So\r\nContent-Length: 9\r\n\r\n") do |_, pyroscope|
        expect(pyroscope.stats).to include(sent: 1)
      end
    end

    it "takes the status for the answer although the rest never comes" do
      send_to([400, { "Content-Length" => 9 }]) do |requests, _|
        expect(requests.size).to eq(1)
        expect(logger[:error]).to match([/after 1 attempt: status 400: So body\z/])
      end
    end

    it "shows what the server says on one line, without what a terminal would obey" do
      body = "a\nb\e[31m\xFF#{"é" * 1000}\n"
      answer = "HTTP/1.1 400 S\eo\xE9\r\nContent-Length: #{body.bytesize}\r\n\r\n#{body}"
      send_to(answer) do
        expect(logger[:error].first[/status.*/m]).to match(/\Astatus 400: S\?o\uFFFD a\?b\?\[31m\uFFFDé{100,300}\z/)
      end
    end

    it "says where a redirect leads to" do
      send_to([301, { "Location" => "http://other/" }]) do
        expect(logger[:error]).to match([%r{status 301: So to http://other/ body\z}])
      end
    end

    it "gives up when there is no server" do
      port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      pyroscope = uploader("http://127.0.0.1:#{port}", retries: 1)
      pyroscope.call(profile)
      expect(pyroscope.drain).to be(true)
      expect(logger[:error]).to match([/not sent, after 2 attempts: Errno::ECONNREFUSED/])
    ensure
      pyroscope.stop!
    end

    it "drops the oldest when too many wait, and says so once" do
      FakeHttpServer.run(:hang) do |server|
        pyroscope = uploader(server.url, queue_size: 2)
        pyroscope.call(profile)
        wait_until { server.requests.size == 1 }
        profiles = Array.new(5) { new_collector(sample_rate: 1.0).profile { Object.new } }
        profiles.each { |waiting| pyroscope.call(waiting) }
        expect(pyroscope.stats).to include(dropped: 3, waiting: 3)
        expect(logger[:warn].grep(/queue of 2 profiles is full/).size).to eq(1)
      ensure
        pyroscope.stop!(0.1)
        expect(logger[:error]).to match([/profiles not sent within 0.1 s: 3/])
      end
    end

    it "does not wait for the server" do
      FakeHttpServer.run(:hang) do |server|
        pyroscope = uploader(server.url, retries: 0)
        2.times { pyroscope.call(profile) }
        # The first has not failed yet; it would in a minute.
        expect(pyroscope.stats).to include(sent: 0, failed: 0, waiting: 2)
      ensure
        pyroscope.stop!(0.1)
      end
    end

    it "raises nothing, but logs it" do
      pyroscope = uploader("http://127.0.0.1:1", tags: { pod: -> { "a,b" } })
      expect(pyroscope.call(profile)).to be_nil
      expect(pyroscope.call(nil)).to be_nil
      expect(logger[:error]).to match([/the tag pod must consist of .* got "a,b"/, /NoMethodError/])
    end

    it "warns once about names that Pyroscope does not know" do
      send_to(200) { expect(logger[:warn]).to eq([]) }
      FakeHttpServer.run(200) do |server|
        pyroscope = uploader(server.url)
        2.times { pyroscope.call(new_collector.profile { nil }) }
        expect(logger[:warn]).to match([/sample_type_names: :go/])
      ensure
        pyroscope.stop!
      end
    end

    it "is not in the program's profiles" do
      seen = new_collector(sample_rate: 1.0).profile { send_to(200) { nil } }
      frames = Pprof.decode(seen).samples.flat_map(&:names).uniq
      expect(frames).to include("MemprofilerPprof::Pyroscope#initialize")
      expect(frames.grep(/Pyroscope#(?:enqueue|work|send_job)|Pyroscope::Client#post/)).to eq([])
    end
  end

  describe "#stop!" do
    it "sends what is left, and starts again for another profile" do
      # Other examples may have left an uploader.
      before = Thread.list
      FakeHttpServer.run(200) do |server|
        pyroscope = uploader(server.url)
        3.times { pyroscope.call(profile) }
        pyroscope.stop!
        expect(server.requests.size).to eq(3)
        pyroscope.call(profile)
        pyroscope.stop!
        expect(server.requests.size).to eq(4)
        wait_until { (Thread.list - before).none? { |thread| thread.name == "ruby_memprofiler_pprof uploader" } }
      end
    end

    it "abandons a thread that does not end when it is killed" do
      outcome = run_ruby(<<~RUBY)
        require "ruby_memprofiler_pprof/pyroscope"
        MemprofilerPprof::Pyroscope.const_set(:JOIN_TIMEOUT, 0.1)
        profile = new_collector(sample_type_names: :go).profile { nil }
        begun = Queue.new
        profile.define_singleton_method(:pprof_data) do
          begun << 1
          sleep
        ensure
          sleep
        end
        pyroscope = MemprofilerPprof::Pyroscope.new(url: "http://127.0.0.1:1", app_name: "shop")
        pyroscope.call(profile)
        begun.pop
        pyroscope.stop!(0.1)
        $stdout.syswrite("stopped")
        exit!
      RUBY
      expect(outcome.stdout).to eq("stopped"), outcome.to_s
    end
  end

  describe "#retire" do
    it "sends what is left, and whatever comes late" do
      FakeHttpServer.run(200) do |server|
        pyroscope = uploader(server.url)
        2.times { pyroscope.call(profile) }
        pyroscope.retire
        pyroscope.drain
        pyroscope.call(profile)
        pyroscope.drain
        expect(server.requests.size).to eq(3)
      end
    end
  end

  describe "as a flusher's on_flush" do
    it "receives the profiles that are written" do
      Dir.mktmpdir do |directory|
        FakeHttpServer.run(200) do |server|
          pyroscope = uploader(server.url)
          MemprofilerPprof::FileFlusher.new(new_collector(sample_rate: 1.0).start, interval: 1000, on_flush: pyroscope,
                                                                                   pattern: "#{directory}/a",
                                                                                   sample_type_names: :go).run { nil }
          pyroscope.stop!
          expect(server.requests.map { |request| request.body.b }).to eq([File.binread("#{directory}/a")])
          expect(Pprof.decode(server.requests.first.body).type_names.first).to eq("alloc_objects")
        end
      end
    end

    # What a process with a flusher sends when it runs this code and exits. It would wait for a response longer than it
    # is allowed to run.
    def run_program(code, url, exit_timeout: 60)
      run_ruby(<<~RUBY, args: [url])
        require "ruby_memprofiler_pprof/pyroscope"
        collector = new_collector(sample_rate: 1.0).start
        pyroscope = MemprofilerPprof::Pyroscope.new(url: ARGV.first, app_name: "shop", retry_wait: 0.1, timeout: 600,
                                                    exit_timeout: #{exit_timeout}, tags: { pid: -> { Process.pid } })
        MemprofilerPprof::BlockFlusher.new(collector, interval: 1000, on_flush: pyroscope, sample_type_names: :go).start!
        #{code}
      RUBY
    end

    it "sends the last profile of a process that exits" do
      FakeHttpServer.run(200) do |server|
        outcome = run_program("", server.url)
        expect([outcome.stderr, server.requests.size]).to eq(["", 1])
      end
    end

    it "delays a process's exit no longer than exit_timeout" do
      FakeHttpServer.run(:hang) do |server|
        outcome = run_program("", server.url, exit_timeout: 0.1)
        expect(outcome).to have_attributes(success?: true, stderr: /profiles not sent within 0.1 s: 1/)
      end
    end

    it "shares exit_timeout with all others" do
      outcome = run_ruby(<<~RUBY)
        require "ruby_memprofiler_pprof/pyroscope"
        waits = []
        uploaders = Array.new(2) { MemprofilerPprof::Pyroscope.new(url: "http://127.0.0.1:1", app_name: "shop") }
        uploaders.each { |uploader| uploader.define_singleton_method(:drain) { |timeout| waits << timeout } }
        uploaders.each(&:finish)
        print waits[0] <= 5 && waits[1] < waits[0]
      RUBY
      expect(outcome.stdout).to eq("true"), outcome.to_s
    end

    it "ends no process by SIGPIPE if the server hangs up before it has read the profile" do
      outcome = run_program(<<~RUBY, "http://127.0.0.1:1")
        trap("PIPE", "SYSTEM_DEFAULT")
        server = TCPServer.new("127.0.0.1", 0)
        refusing = Thread.new { server.accept.tap { |client| client.getc && client.shutdown(:WR) }.close }
        client = MemprofilerPprof::Pyroscope::Client.new("http://127.0.0.1:\#{server.addr[1]}", timeout: 60,
                                                         auth_token: nil, basic_auth: nil, tenant_id: nil)
        # More than the system takes while nobody reads.
        $stdout.syswrite(client.post("shop", collector.peek, "x" * 50_000_000))
        exit!
      RUBY
      expect(outcome.stdout).to eq("EOFError: end of file reached"), outcome.to_s
    end

    it "continues in a forked child, which sends nothing of its parent's" do
      FakeHttpServer.run(500, 200) do |server|
        outcome = run_program(<<~RUBY, server.url)
          first, second = Array.new(2) { collector.flush(sample_type_names: :go) }
          forked = Queue.new
          first.define_singleton_method(:pprof_data) { forked.pop; super() }
          [first, second].each { |profile| pyroscope.call(profile) }
          Process.wait(fork { nil })
          forked.close
          puts Process.pid
        RUBY
        expect(outcome).to be_success, outcome.to_s
        # Three of the parent, preceded by one of the child, which came first, was refused, and was sent again.
        names = server.requests.map { |request| request.query["name"] }
        expect(names.tally.values).to eq([2, 3])
        expect(names.last).to eq("shop{pid=#{outcome.stdout.chomp}}")
      end
    end
  end

  describe ".new" do
    {
      { url: "pyroscope:4040" } => /url must begin with http:.* got "pyroscope:4040"/,
      { url: "http://" } => /url must begin/,
      { url: "htps://me:secret@x" } => %r{url must begin .* got "htps://\[hidden\]@x"},
      { url: "http://me:secret@x y" } => %r{url must begin .* got "http://\[hidden\]@x y"},
      { url: "ftp://x" } => /url must begin/,
      { url: "http://me:secret@x" } => /url must not have a user or password: pass basic_auth\z/,
      { app_name: "a b" } => /app_name must consist of .* got "a b"/,
      { tags: { "a-b" => "1" } } => /a tag's name must .* got "a-b"/,
      { tags: { a: "x,y" } } => /the tag a must consist of characters other than , = { }, got "x,y"/,
      { auth_token: "a", basic_auth: %w[a b] } => /exclude/,
      { auth_token: "a\nb" } => /auth_token must be a String without blanks\z/,
      { timeout: 0 } => /timeout must be .* got 0/,
      { retries: -1 } => /retries must be an Integer from 0, got -1/,
      { queue_size: 0 } => /queue_size must be an Integer from 1, got 0/
    }.each do |options, message|
      it "refuses #{options}" do
        expect { described_class.new(url: "http://x", app_name: "a", **options) }.to raise_error(ArgumentError, message)
      end
    end

    { { tags: [] } => /tags must be a Hash/, { app_name: :a } => /app_name must be a String, got :a/,
      { basic_auth: "a:b" } => /basic_auth must be nil or an Array/, { timeout: "1" } => /timeout must be a number/,
      { retries: 1.5 } => /retries must be an Integer/ }.each do |options, message|
      it "refuses #{options}, which has a wrong type" do
        expect { described_class.new(url: "http://x", app_name: "a", **options) }.to raise_error(TypeError, message)
      end
    end
  end
end
