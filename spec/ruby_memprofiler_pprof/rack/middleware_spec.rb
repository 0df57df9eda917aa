# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack"
require "timeout"

RSpec.describe MemprofilerPprof::Rack::Middleware, :moving, :threads do
  thing = Class.new
  before do
    stub_const("Thing", thing)
    stub_const("LEAK", [])
  end

  let(:app) { ->(_) { [200, { "content-type" => "text/plain" }, ["shop"]] } }

  def middleware(app = self.app, **options)
    described_class.new(app, authorize: ->(_) { true }, **NewCollector.liveness, **options)
  end

  def get(stack, path = "/?memprofiler=pprof", **env)
    path, query = path.split("?", 2)
    stack.call({ "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => path, "QUERY_STRING" => query.to_s,
                 **env.transform_keys(&:to_s) })
  end

  # [allocated, retained] things of a request to this app.
  def things(app, **options)
    status, _, body = get(middleware(app, **options))
    raise "#{status}: #{body.join}" unless status == 200

    profile = Pprof.decode(body.join)
    %w[allocations retained_objects].map { |type| profile.by_class(type).fetch("Thing", 0) }
  end

  # Made only once: an object created by a request may be found on the machine stack, and so count as retained.
  def answer
    @answer ||= [200, {}, ["shop"]]
  end

  # A client's second response, as text or as a page: during the first the VM fills inline caches.
  def text(app, path = "/?memprofiler=text", **options)
    stack = middleware(app, **options)
    Array.new(2) { get(stack, path) }.last.last.join
  end

  it "passes other requests through" do
    expect(get(middleware, "/")).to eq(app.call({}))
    expect(get(middleware, "/?xmemprofiler=1&a=memprofiler")).to eq(app.call({}))
    expect(MemprofilerPprof.collectors).to eq([])
  end

  it "announces a server" do
    allow(MemprofilerPprof::Service).to receive(:announce)
    get(middleware, "/")
    expect(MemprofilerPprof::Service).to have_received(:announce)
  end

  it "passes all requests through if the profiler is switched off" do
    allow(MemprofilerPprof.profiler).to receive(:enabled?).and_return(false)
    expect(get(middleware)).to eq(app.call({}))
  end

  it "shows what a request allocated and retained" do
    counts = things(lambda do |_|
      LEAK << Thing.new
      10.times { Thing.new }
      answer
    end)
    expect(counts).to eq([11, 1])
  end

  it "counts every object by default" do
    profile = Pprof.decode(get(middleware).last.join)
    expect(profile.comments).to include("sample_rate=1", "max_heap_samples=500000", "greatest_weight=1")
  end

  it "uses its own collector, which is gone afterwards" do
    during = nil
    get(middleware(->(_) { answer.tap { during = MemprofilerPprof.collectors } }))
    expect(during.map(&:only)).to eq([:thread])
    expect(MemprofilerPprof.collectors).to eq([])
  end

  it "leaves no collector behind if the request times out while the profile is made" do
    stack = middleware
    allow(MemprofilerPprof::Collector).to receive(:new).and_wrap_original do |original, **options|
      original.call(**options).tap do |collector|
        allow(collector).to receive(:flush).and_wrap_original do |flush, **arguments|
          arguments.empty? ? flush.call : raise(Timeout::Error)
        end
      end
    end
    expect { get(stack) }.to raise_error(Timeout::Error)
    expect(MemprofilerPprof.collectors).to eq([])
  end

  it "excludes what other threads allocate meanwhile" do
    counts = things(lambda do |_|
      Thread.new { 100.times { LEAK << Thing.new } }.join
      LEAK << Thing.new
      answer
    end)
    expect(counts).to eq([1, 1])
  end

  it "counts what fibers of the request allocate" do
    expect(things(lambda do |_|
      LEAK << Enumerator.new { |out| out << Thing.new }.next
      answer
    end)).to eq([1, 1])
  end

  it "excludes what other fibers allocate if a scheduler runs requests in fibers" do
    # The parts of a scheduler that have proven to matter.
    scheduler = Class.new do
      def block(*) = Fiber.yield
      def unblock(*) = nil
      def kernel_sleep(*) = Fiber.yield
      def io_wait(*) = nil
      def fiber(&) = Fiber.new(blocking: false, &).tap(&:resume)
    end
    counts = nil
    stack = middleware(lambda do |_|
      Thing.new
      Fiber.yield
      answer
    end)
    Thread.new do
      Fiber.set_scheduler(scheduler.new)
      request = Fiber.new(blocking: false) { get(stack) }
      request.resume
      Fiber.new(blocking: false) { 100.times { Thing.new } }.resume
      counts = Pprof.decode(request.resume.last.join).by_class("allocations")
    end.join
    expect(counts["Thing"]).to eq(1)
  end

  it "does not count what the program puts into the environment as retained" do
    expect(things(lambda do |env|
      env["shop.thing"] = Thing.new
      answer
    end)).to eq([1, 0])
  end

  describe "the program's response" do
    it "is read and closed inside" do
      body = Class.new do
        attr_reader :closed

        def each
          3.times { |i| yield Thing.new && "part #{i}" }
        end

        def close
          @closed = Thing.new
        end
      end.new
      expect(things(->(_) { [200, {}, body] })).to eq([4, 1])
      expect(body.closed).to be_a(Thing)
    end

    it "is closed when it fails, and its exception propagates" do
      closed = false
      body = Class.new do
        define_method(:each) { raise IOError, "broken" }
        define_method(:close) { closed = true }
      end.new
      expect { get(middleware(->(_) { [200, {}, body] })) }.to raise_error(IOError, "broken")
      expect(closed).to be(true)
      expect(MemprofilerPprof.collectors).to eq([])
    end

    it "may stream" do
      streamed = lambda do |stream|
        LEAK << Thing.new
        stream << "part"
        stream.write("an", "other")
        stream.close
      end
      expect(things(->(_) { [200, {}, streamed] })).to eq([1, 1])
      LEAK.clear
      expect(things(->(_) { [200, { "rack.hijack" => streamed }, []] })).to eq([1, 1])
      expect(text(->(_) { [200, {}, streamed] })).to include("status 200, 11 bytes")
    end

    it "need not end" do
      endless = Class.new { def each = loop { yield "x" } }.new
      expect(text(->(_) { [200, {}, endless] }, max_seconds: 0.01)).to include("status 200")
      expect(text(->(_) { [200, {}, ->(stream) { loop { stream.write("x") } }] }, max_seconds: 0.01)).to include("200")
    end

    it "cannot send early hints" do
      seen = nil
      get(middleware(->(env) { answer.tap { seen = env } }), "rack.early_hints" => ->(_) {})
      expect(seen).not_to have_key("rack.early_hints")
    end

    it "cannot take the connection away" do
      seen = nil
      stack = middleware(->(env) { answer.tap { seen = env } })
      get(stack, "rack.hijack?" => true, "rack.hijack" => -> {})
      expect(seen).to include("rack.hijack?" => false)
      expect(seen).not_to have_key("rack.hijack")
    end
  end

  it "propagates exceptions unchanged" do
    expect { get(middleware(->(_) { raise ArgumentError, "bug" })) }.to raise_error(ArgumentError, "bug")
    expect { get(middleware(->(_) { raise MemprofilerPprof::Error, "own" })) }.to raise_error(MemprofilerPprof::Error)
    expect(catch(:halt) { get(middleware(->(_) { throw :halt, "thrown" })) }).to eq("thrown")
    expect(MemprofilerPprof.collectors).to eq([])
    expect(get(middleware).first).to eq(200)
  end

  it "ends the profile if the request is aborted" do
    inside = Queue.new
    stack = middleware(->(_) { (inside << MemprofilerPprof.collectors.size) && sleep })
    thread = Thread.new { get(stack) }
    expect(inside.pop).to eq(1)
    thread.kill.join
    expect(MemprofilerPprof.collectors).to eq([])
  end

  it "responds with 503 if profiling is impossible" do
    allow(MemprofilerPprof::Collector).to receive(:new).and_wrap_original do |original, **options|
      original.call(**options).tap do |collector|
        allow(collector).to receive(:start).and_raise(MemprofilerPprof::RactorError, "not here")
      end
    end
    expect(get(middleware))
      .to match([503, include("x-go-pprof" => "1"), ["not here (MemprofilerPprof::RactorError)\n"]])
  end

  it "responds with 503 if the profile fails, rather than as if the program had" do
    allow(MemprofilerPprof::Collector).to receive(:new).and_wrap_original do |original, **options|
      original.call(**options).tap do |collector|
        # The other one is what removes the hook.
        allow(collector).to receive(:flush).and_call_original
        allow(collector).to receive(:flush).with(gc: true).and_raise(MemprofilerPprof::InternalError, "a bug")
      end
    end
    expect(get(middleware)).to match([503, include("x-go-pprof" => "1"), ["a bug (MemprofilerPprof::InternalError)\n"]])
    expect(MemprofilerPprof.collectors).to eq([])
  end

  it "profiles no more requests at a time than allowed" do
    inside = Queue.new
    gate = Queue.new
    stack = middleware(->(_) { (inside << true) && gate.pop && answer })
    first = Thread.new { get(stack) }
    inside.pop
    expect(get(stack)).to match([429, include("retry-after" => "1"), [/max_concurrent is 1\. Try again later/]])
    gate << true
    expect(first.value.first).to eq(200)
  end

  describe "access" do
    it "is denied by default outside development" do
      stack = described_class.new(app)
      environment = { "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "localhost" }
      with_environment("RACK_ENV" => "production", "RAILS_ENV" => nil) do
        expect(get(stack, **environment)).to eq(app.call({}))
      end
      with_environment("RACK_ENV" => "development", "RAILS_ENV" => nil) do
        expect(get(stack, **environment)[1]).to include("content-type" => "application/octet-stream")
      end
    end

    it "is decided by the callable; other requests pass through unprofiled" do
      stack = described_class.new(app, authorize: ->(env) { env["admin"] })
      expect(get(stack)).to eq(app.call({}))
      expect(get(stack, "/?memprofiler=nonsense")).to eq(app.call({}))
      expect(get(stack, admin: true)[1]).to include("content-type" => "application/octet-stream")
    end

    def with_environment(names)
      before = ENV.to_h.slice(*names.keys)
      ENV.update(names)
      yield
    ensure
      ENV.update(names.transform_values { nil }.merge(before))
    end
  end

  describe "the request for a profile" do
    it "is a parameter or a header, whose names can be changed" do
      type = ->(response) { response[1]["content-type"] }
      expect(type.call(get(middleware, "/", HTTP_X_MEMPROFILER: "pprof"))).to eq("application/octet-stream")
      other = middleware(parameter: "mem", header: "X-Mem")
      expect(type.call(get(other, "/?a=b&mem=pprof"))).to eq("application/octet-stream")
      expect(type.call(get(other, "/", HTTP_X_MEM: "pprof"))).to eq("application/octet-stream")
      expect(get(other)).to eq(app.call({}))
      expect(get(middleware(parameter: nil))).to eq(app.call({}))
      expect(get(middleware(header: nil), "/", HTTP_X_MEMPROFILER: "pprof")).to eq(app.call({}))
    end

    it "must name a known format" do
      expect(get(middleware, "/?memprofiler=pdf"))
        .to match([400, include("x-go-pprof" => "1"),
                   ["memprofiler must be one of html, text, pprof, cpu or nothing, got \"pdf\".\n"]])
    end
  end

  describe "the response" do
    let(:app) do
      lambda do |_|
        LEAK << ("<leak>" * 100)
        2000.times { Thing.new }
        answer
      end
    end

    it "is a page in browsers and text elsewhere" do
      types = [nil, "text/html,*/*", "*/*"].map do |accept|
        get(middleware, "/?memprofiler", HTTP_ACCEPT: accept)[1]["content-type"]
      end
      expect(types).to eq(["text/plain; charset=utf-8", "text/html; charset=utf-8", "text/plain; charset=utf-8"])
    end

    it "is a file to download as pprof" do
      expect(get(middleware)[1]).to include("content-disposition" => 'attachment; filename="request.pprof"')
    end

    it "summarizes as text" do
      body = text(app, "/carts/1?memprofiler=text&x=secret")
      expect(body).to start_with("GET /carts/1: status 200, 4 bytes, ")
      expect(body).to match(/^allocated: 80,\d{3} bytes in 2,00\d objects\nretained:  64\d bytes in 1 objects$/)
      expect(body).to match(/^retained by class \(bytes, objects\)\n +64\d +1  String$/)
      expect(body).to match(/^allocated by class \(bytes, objects\)\n +80,000 +2,000  Thing$/)
      expect(body).to match(/^retained by line \(bytes, objects\)\n +64\d +1  #{__FILE__}:\d+ in String#\*$/)
      expect(body[/^retained by call path.*/m])
        .to match(/\A.* \(bytes, objects\)\n +64\d +1  String\n +#{__FILE__}:\d+ in String#\*$/)
    end

    it "shows the program's own frames only" do
      paths = text(app)[/^retained by call path.*/m]
      expect(paths).not_to match(/Middleware#run|RSpec::Core/)
    end

    it "has no more lines than requested" do
      many = lambda do |_|
        LEAK << ("x" * 1000)
        LEAK << ("x" * 3000)
        LEAK << ("x" * 2000)
        answer
      end
      expect(text(many, top: 1)[/^retained by line.*?\n\n/m].lines.map(&:strip))
        .to match(["retained by line (bytes, objects)", /\A3,04\d +1  .*:#{__LINE__ - 5} in String#\*\z/, "and 2 more",
                   ""])
    end

    it "is the same as a page, escaped" do
      body = text(app, "/<b>?memprofiler=html")
      expect(body).to include("<h1>GET /&lt;b&gt;</h1>", '<td class="number">2,000</td><td class="code">Thing</td>')
      expect(body).to include("retained by call path", "String#*")
      expect(body).not_to match(/<script|<b>(?!String)/)
    end
  end

  describe ".new" do
    { { parameter: 1 } => /parameter must be nil or a String, got 1/, { top: 0 } => /top must be an Integer from 1/,
      { max_seconds: 0 } => /max_seconds must be a number above 0/, { sample_rate: 2 } => /sample_rate must be/,
      { max_concurrent: 0 } => /max_concurrent must be/, { rate: 1 } => /keyword: :rate/ }.each do |options, text|
      it "refuses #{options}" do
        expect { middleware(**options) }.to raise_error(ArgumentError, text)
      end
    end
  end

  it "works in a real server" do
    skip "Puma or Rack is not installed" unless HttpServer.available?

    stack = Rack::Lint.new(middleware(app))
    HttpServer.serve(stack) do |url|
      expect(HttpServer.get("#{url}/").body).to eq("shop")
      expect(HttpServer.get("#{url}/a?memprofiler").body).to start_with("GET /a: status 200, 4 bytes")
      profile = Pprof.decode(HttpServer.get("#{url}/", X_Memprofiler: "pprof").body)
      expect(profile.samples_with_frame("MemprofilerPprof::Rack::Middleware#run").size)
        .to eq(profile.samples.size).and be_positive
    end
  end

  describe "cpu" do
    # Beside other busy processes the kernel may send a thread no tick in 100 ms of its CPU time.
    def work
      last = MemprofilerPprof::CPU.stats[:signals] + 5
      1000.times { nil } while MemprofilerPprof::CPU.stats[:signals] < last
      answer
    end

    it "answers with where the request's CPU time went" do
      status, headers, body = get(middleware(->(_) { work }), "/?memprofiler=cpu")
      expect([status, headers["content-disposition"]]).to eq([200, 'attachment; filename="cpu.pprof"'])
      profile = Pprof.decode(body.join)
      found = profile.samples.select { |sample| sample.names.any?(/#work\z/) }.sum { |sample| sample[:cpu] }
      expect(found).to be > 0.5 * profile.samples.sum { |sample| sample[:cpu] }
    end

    it "is a flame graph in browsers" do
      _, headers, body = get(middleware(->(_) { work }), "/a?memprofiler=cpu", HTTP_ACCEPT: "text/html")
      expect([headers["content-type"], body.join]).to match(["text/html; charset=utf-8", %r{GET /a.*nanoseconds}m])
    end

    it "passes exceptions on" do
      expect { get(middleware(->(_) { raise "expected" }), "/?memprofiler=cpu") }.to raise_error("expected")
      expect(MemprofilerPprof::CPU).not_to be_running
    end

    it "has threads' names if the middleware's options say so" do
      _, _, body = get(middleware(->(_) { work }, thread_names: true), "/?memprofiler=cpu")
      expect(Pprof.decode(body.join).samples.map(&:labels)).to include(include("thread" => "main"))
    end

    it "says so if the profile fails afterwards" do
      allow(MemprofilerPprof::CPU).to receive(:profile).and_wrap_original do |original, **options, &block|
        original.call(**options, &block)
        raise MemprofilerPprof::Error, "it was lost"
      end
      status, _, body = get(middleware, "/?memprofiler=cpu")
      expect([status, body.join]).to eq([503, "it was lost (MemprofilerPprof::Error)\n"])
    end

    it "says so while another profile is taken" do
      MemprofilerPprof::CPU.start
      status, _, body = get(middleware, "/?memprofiler=cpu")
      expect([status, body.join]).to match([503, /being taken already/])
    ensure
      MemprofilerPprof::CPU.stop
    end
  end

  describe "a HEAD request" do
    ["/?memprofiler", "/?memprofiler=pprof", "/?memprofiler=x"].each do |path|
      it "has an answer without a body: #{path}" do
        _, headers, body = get(middleware(->(_) { [200, {}, []] }), path, REQUEST_METHOD: "HEAD")
        expect([headers, body]).to match([satisfy { |all| !all.key?("content-length") }, []])
      end
    end
  end

  %w[text html].each do |format|
    it "shows a path of any bytes beside names in UTF-8, as #{format}" do
      stub_const("Müller", Class.new)
      app = ->(_) { [200, {}, [Object.const_get("Müller").new.class.name]] }
      status, _, body = get(middleware(app), "/m\xFC?memprofiler=#{format}".b)
      expect([status, body.join]).to match([200, %r{GET /m\uFFFD.*Müller}m])
    end

    it "shows a path whose parts have different encodings, as #{format}" do
      status, _, body = get(middleware, "/m\xFC?memprofiler=#{format}".b, SCRIPT_NAME: "/müller")
      expect([status, body.join]).to match([200, %r{GET /müller/m\uFFFD}])
    end
  end
end
