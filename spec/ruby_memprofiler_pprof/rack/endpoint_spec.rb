# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack"

RSpec.describe MemprofilerPprof::Rack::Endpoint, :liveness, :moving, :threads do
  thing = Class.new
  # The first one after something was redefined comes with a call cache, which would be counted, too.
  before { stub_const("Thing", thing).new }

  let!(:collector) { new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start }
  let(:endpoint) { endpoint_of }

  def endpoint_of(**options)
    described_class.new(collector: collector, authorize: ->(_) { true }, **options)
  end

  def allocate(count)
    Array.new(count) { Thing.new }
  end

  # The innermost frame of an allocation, as a pattern.
  let(:innermost) { ClassNew.frames.first || "block in [^;]*#allocate" }

  # Status, headers and body of a response.
  def get(path, app: endpoint, **env)
    path, query = path.split("?", 2)
    env = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "/debug/pprof", "PATH_INFO" => path,
            "QUERY_STRING" => query.to_s, "rack.url_scheme" => "http", "HTTP_HOST" => "localhost:80",
            **env.transform_keys(&:to_s) }
    status, headers, body = app.call(env)
    [status, headers, body.join]
  end

  # Makes the endpoint wait until the block has run, whatever time was requested. The block gets its own thread, since a
  # request's thread is not profiled.
  def meanwhile(app = endpoint)
    allow(app).to(receive(:sleep) { |seconds| Thread.new { yield seconds }.join })
  end

  # A thread with a request that is already waiting, and the queue that lets it continue.
  def waiting(app = endpoint, &)
    asleep = Queue.new
    gate = Queue.new
    allow(app).to(receive(:sleep) { (asleep << true) && gate.pop })
    thread = Thread.new(&)
    asleep.pop
    [thread, gate]
  end

  # What a response reports about the things, by value.
  def things(path, value, **options)
    status, _, body = get(path, **options)
    raise "#{status}: #{body}" unless status == 200

    Pprof.decode(body).total(value) { |sample| sample.labels["class"] == "Thing" }
  end

  # How many more readers a collector can have.
  def free_readers(collector)
    (0..).find do
      collector.open_reader && false
    rescue MemprofilerPprof::Error
      true
    end
  end

  it "follows the settings of flushes, as the other processes do" do
    settings = instance_double(MemprofilerPprof::Configuration, flush_options: { min_age: 3 })
    allow(MemprofilerPprof.profiler).to receive_messages(running?: true, collector: collector, siblings: {})
    allow(MemprofilerPprof).to receive(:config).and_return(settings)
    kept = allocate(5)
    young = things("/heap?gc=1", "retained_objects")
    4.times { GC.start }
    expect([young, things("/heap", "retained_objects")]).to eq([0, kept.size])
  end

  describe "heap" do
    it "shows what is alive" do
      kept = allocate(5)
      allocate(20)
      expect(things("/heap?gc=1", "retained_objects")).to eq(kept.size)
    end

    it "is a file to download" do
      status, headers, body = get("/heap")
      expect(status).to eq(200)
      expect(headers).to include("content-type" => "application/octet-stream", "content-length" => body.bytesize.to_s,
                                 "content-disposition" => 'attachment; filename="heap.pprof"')
    end

    it "is a snapshot, which does not affect a flusher's allocations" do
      kept = allocate(5)
      2.times { expect(things("/heap", "allocations")).to eq(5) }
      expect(Pprof.decode(get("/heap").last).duration_nanos).to eq(0)
      total = Pprof.decode(collector.flush).total("allocations") { |sample| sample.labels["class"] == "Thing" }
      expect(total).to eq(kept.size)
    end

    it "does not collect garbage unless requested" do
      expect(["/heap", "/heap?gc=0"].map { |target| collects_garbage? { get(target) } }).to eq([false, false])
      expect { get("/heap?gc=1") }.to(change { GC.stat(:major_gc_count) })
    end

    it "is text with debug=1, starting with what retains most" do
      kept = allocate(1000)
      status, headers, body = get("/heap?debug=1")
      expect([status, headers["content-type"]]).to eq([200, "text/plain; charset=utf-8"])
      expect(body).to match(%r{\Aheap profile: \d+: \d+ \[\d+: \d+\] @ heap/1\n# retained objects: bytes \[})
      expect(body).to include("# sample_rate=1\n")
      expect(body)
        .to match(/^1000: 40000 \[1000: 40000\] @ class=Thing\n#\t.*#{innermost}\t#{__FILE__}:#{allocation_line}$/)
      bytes = body.scan(/^\d+: (\d+) \[/).flatten.map(&:to_i)
      expect(bytes).to eq(bytes.sort.reverse)
      expect(kept.size).to eq(1000)
    end

    def allocation_line
      method(:allocate).source_location.last + 1
    end
  end

  describe "allocs" do
    it "opens with the allocations" do
      expect(Pprof.decode(get("/allocs").last).default_sample_type).to eq("allocations_size")
      expect(Pprof.decode(get("/heap").last).default_sample_type).to eq("retained_size")
      expect(get("/allocs")[1]["content-disposition"]).to include("allocs.pprof")
    end
  end

  describe "delta_heap" do
    it "shows what was allocated since the last one, whoever else flushes, and everything alive" do
      kept = allocate(1)
      get("/delta_heap")
      kept += allocate(2)
      collector.flush
      allocate(3)
      get("/heap")
      body = Pprof.decode(get("/delta_heap?gc=1").last)
      ours = ->(sample) { sample.labels["class"] == "Thing" }
      expect([body.total("allocations", &ours), body.total("retained_objects", &ours)]).to eq([5, kept.size])
      expect(body.duration_nanos).to be_positive
      expect(things("/delta_heap", "allocations")).to eq(0)
    end

    it "starts over when another collector runs" do
      endpoint = endpoint_of(collector: nil)
      get("/delta_heap", app: endpoint)
      collector.stop.flush
      second = new_collector(sample_rate: 1.0).start
      get("/delta_heap", app: endpoint)
      kept = allocate(2)
      expect(things("/delta_heap", "allocations", app: endpoint)).to eq(kept.size)
      expect([second, collector].map { |each| free_readers(each) }).to eq([6, 7])
    end
  end

  describe "seconds" do
    it "shows the allocations in that time, and everything alive" do
      kept = allocate(10)
      meanwhile { (kept += allocate(4)) && allocate(3) }
      profile = Pprof.decode(get("/heap?seconds=9").last)
      ours = ->(sample) { sample.labels["class"] == "Thing" }
      expect(profile.total("allocations", &ours)).to eq(7)
      expect(profile.total("retained_objects", &ours)).to be >= kept.size
      expect(endpoint).to have_received(:sleep).once.with(9)
    end

    it "reports how long it waited" do
      expect(Pprof.decode(get("/heap?seconds=1").last).duration_nanos).to be >= 1_000_000_000
    end

    it "releases its reader, even if the request is aborted" do
      waiting { get("/heap?seconds=9") }.first.kill.join
      expect(free_readers(collector)).to eq(7)
    end

    it "waits no longer than max_seconds" do
      status, _, body = get("/heap?seconds=4", app: endpoint_of(max_seconds: 3))
      expect(status).to eq(400)
      expect(body).to eq("seconds must be a whole number from 1 to 3 (max_seconds), got \"4\".\n")
    end
  end

  describe "the index page" do
    it "is HTML that links to the profiles, wherever it is mounted" do
      status, headers, body = get("/", SCRIPT_NAME: "/internal/prof")
      expect([status, headers["content-type"]]).to eq([200, "text/html; charset=utf-8"])
      expect(body).to include('<a href="/internal/prof/heap?gc=1">', "go tool pprof -http=: http://localhost:80/internal/prof/heap")
      expect(get("")[2]).to include('<a href="/debug/pprof/allocs?seconds=10">')
    end

    it "needs no other resources" do
      _, headers, body = get("/")
      expect(headers["content-security-policy"]).to start_with("default-src 'none'; style-src 'unsafe-inline'")
      expect(body).not_to match(/<(?:script|link|img)|@import|url\(/)
    end

    it "escapes input" do
      _, _, body = get("/", SCRIPT_NAME: "/<b>", HTTP_HOST: '"><script>')
      expect(body).to include("/&lt;b&gt;", "&quot;&gt;&lt;script&gt;")
      expect(body).not_to match(/<b>|<script/)
    end

    it "shows a host and a path of different encodings" do
      _, _, body = get("/", SCRIPT_NAME: "/m\xFC".b, HTTP_HOST: "müller")
      expect(body).to include("<h1>/m\uFFFD on ", "http://müller/m\uFFFD/heap")
    end

    it "says what other processes take to be listed" do
      expect(get("/")[2]).to include("the setting <code>socket</code> contain <code>%{pid}</code>")
    end

    it "says how the collector samples, and why" do
      sampling, reason = collector.stats.values_at(:sampling, :sampling_reason)
      expect(get("/").last).to include("Sampling: #{sampling} (#{reason}).")
    end

    it "says whether a collector runs" do
      expect(get("/")[2]).to include("at a rate of 1.0")
      collector.stop
      expect(get("/")[2]).to include("no collector is running")
    end
  end

  it "announces a server to whoever may see profiles" do
    allow(MemprofilerPprof::Service).to receive(:announce)
    get("/cmdline", app: endpoint_of(authorize: ->(_) { false }))
    expect(MemprofilerPprof::Service).not_to have_received(:announce)
    get("/cmdline")
    expect(MemprofilerPprof::Service).to have_received(:announce)
  end

  describe "report" do
    # The lines of the text.
    def lines(path)
      status, _, body = get(path)
      raise "#{status}: #{body}" unless status == 200

      body.lines.map(&:chomp)
    end

    it "shows what the command shows" do
      kept = allocate(2000)
      text = lines("/report?debug=1&by=class&value=retained_objects&gc=1")
      expect(text.grep(/ Thing$/)).to match([/\A2,000  2,000\.\.2,000 .*%  Thing\z/])
      expect(text.first).to match(/\AExplains .* resident memory/)
      expect(kept.size).to eq(2000)
    end

    it "has the options of the command" do
      kept = allocate(10)
      expect(lines("/report?debug=1&by=gem&limit=1").last).to end_with("app")
      expect(lines("/report?debug=1&tree=1")).to include(end_with("CALLS BY METHOD"))
      expect(lines("/report?debug=1&sort=cumulative").size).to eq(lines("/report?debug=1").size)
      expect(lines("/report?debug=1&app=1&value=retained_objects").join).to include(__FILE__.split("/").last)
      expect(kept.size).to eq(10)
    end

    it "is a page with links to the others, keeping its parameters" do
      _, headers, body = get("/report?token=%22%3E&by=class", SCRIPT_NAME: "/<b>")
      expect(headers["content-type"]).to eq("text/html; charset=utf-8")
      expect(body).to include('<a href="?by=gem&amp;token=%22%3E">gem</a>', '<a href="/&lt;b&gt;/">')
      expect(body).not_to match(/<b>|<script|">>/)
    end

    it "escapes the profile's contents" do
      stub_const("Hostile", Class.new { def self.name = "<img src=x>" })
      kept = Class.new { define_method(:"<img src=x>") { Array.new(5000) { [] } } }.new.public_send(:"<img src=x>")
      body = get("/report?by=method").last
      expect(body).to include("&lt;img src=x&gt;").and(satisfy { |html| !html.include?("<img") })
      expect(kept.size).to eq(5000)
    end
  end

  describe "diff" do
    it "shows what grew meanwhile" do
      before = allocate(3000)
      kept = nil
      meanwhile { kept = allocate(500) }
      # At rate 1 there is no doubt.
      expect(get("/diff?debug=1&seconds=9&by=class&value=retained_objects&gc=1").last)
        .to match(/^ *\+500 +500\.\.500 +>99\.9% +3,000 .* 3,500 .* Thing$/)
      expect(endpoint).to have_received(:sleep).once.with(9)
      expect([before, kept].sum(&:size)).to eq(3500)
    end

    it "releases its reader" do
      meanwhile { nil }
      get("/diff?seconds=9")
      expect(free_readers(collector)).to eq(7)
    end
  end

  describe "flamegraph" do
    it "may only do what the page needs, and not be framed" do
      _, headers, body = get("/flamegraph")
      policy = headers["content-security-policy"].delete_suffix("; frame-ancestors 'none'")
      expect(policy).to start_with("default-src 'none'; style-src 'sha256-")
      expect(body).to include(%(http-equiv="Content-Security-Policy" content="#{policy}"))
      expect(headers["content-security-policy"]).to end_with("; frame-ancestors 'none'")
    end

    it "is folded stacks as text" do
      kept = allocate(10)
      # Where new has no frame, inline caches appear to come from the same place.
      text = get("/flamegraph?debug=1&value=retained_objects").last
      counts = text.scan(/#allocate;.*#{innermost} (\d+)$/).flatten.map(&:to_i)
      expect(counts).to include(be_between(10, ClassNew::FRAME ? 10 : 20))
      expect(kept.size).to eq(10)
    end
  end

  describe "leaks" do
    it "shows what the command does" do
      expect(get("/leaks?debug=1&by=class").last).to start_with("Process #{Process.pid}: 1 profile so far, ")
    end

    it "is a page that links to the others, with the parameters of this one" do
      _, headers, body = get("/leaks?token=%22%3E&limit=3")
      expect(headers["content-type"]).to eq("text/html; charset=utf-8")
      expect(body).to include("<h1>Process #{Process.pid}: what keeps growing</h1>", "<pre>Process #{Process.pid}: ",
                              '<a href="?limit=3&amp;token=%22%3E&amp;by=gem">gem</a>')
    end
  end

  describe "memory" do
    it "is a page with what the command prints" do
      asked = RecordedMemory.answer_of(collector)
      _, headers, body = get("/memory?token=%22%3E&quick=1")
      expect(headers["content-type"]).to eq("text/html; charset=utf-8")
      expect(body).to include("<h1>Process #{Process.pid}: where the memory is</h1>", "204 MiB resident",
                              '<a href="?quick=1&amp;token=%22%3E&amp;format=json">JSON</a>')
      expect(asked).to eq([false])
    end

    it "is text or JSON on request" do
      asked = RecordedMemory.answer_of(collector)
      expect(get("/memory?debug=1")[2]).to eq(get("/memory?format=text")[2]).and start_with("Process #{Process.pid}, ")
      status, headers, body = get("/memory?format=json")
      expect([status, headers["content-type"]]).to eq([200, "application/json"])
      expect(JSON.parse(body)).to include("rss_bytes" => 213_647_360, "full" => true)
      expect(get("/memory?format=pprof")).to match([400, Hash, /\Aformat must be one of html, text, json, got "pprof"/])
      expect(asked).to eq([true] * 3)
    end

    it "escapes what it shows" do
      held = [{ site: "<img src=x>:1", bytes: 1e7, objects: 1.0 }]
      RecordedMemory.answer_of(collector) { RecordedMemory.json(held_slots: held) }
      expect(get("/memory")[2]).to include("&lt;img src=x&gt;").and(satisfy { |html| !html.include?("<img") })
    end
  end

  describe "retainers" do
    let(:json) { RecordedRetainers.json(pid: Process.pid) }

    it "is a page with what the command prints, and links to other forms" do
      RecordedRetainers.answer_of(collector)
      _, headers, body = get("/retainers?token=%22%3E&site=a.rb:7")
      expect(headers["content-type"]).to eq("text/html; charset=utf-8")
      expect(body.force_encoding("UTF-8"))
        .to include("<h1>Process #{Process.pid}: who holds what is alive</h1>", "@cards → Hash (6,724)",
                    '<a href="?site=a.rb%3A7&amp;token=%22%3E&amp;format=json">JSON</a>', '<a href="/debug/pprof/">')
    end

    it "is text, JSON or a profile on request" do
      asked = RecordedRetainers.answer_of(collector)
      text = get("/retainers?format=text&site=app/a.rb:7&class=Foo%3A%3AB%C3%A4r&limit=3&timeout=9&in_process=1")
      expect([text[1]["content-type"], text[2]]).to match(["text/plain; charset=utf-8", /\AProcess #{Process.pid}, /])
      expect(asked).to eq([["app/a.rb:7", "Foo::Bär", 3, true, 9]])
      expect(get("/retainers?debug=1")[2]).to eq(get("/retainers?format=text")[2])
      expect(get("/retainers?format=json")).to match([200, include("content-type" => "application/json"), json])
      expect(get("/retainers?format=pprof"))
        .to match([200, include("content-disposition" => 'attachment; filename="retainers.pprof"'),
                   RecordedRetainers.pprof])
      both = MemprofilerPprof::OnDemand.split(get("/retainers?format=both")[2])
      expect(both).to eq([json.b, RecordedRetainers.pprof])
    end

    it "is an Array as JSON if all processes are asked, even if there is only one" do
      RecordedRetainers.answer_of(collector)
      expect(JSON.parse(get("/retainers?pid=all&format=json")[2])).to eq([JSON.parse(json)])
    end

    it "escapes what it shows" do
      answer = [RecordedRetainers.json(sites: [hostile]), RecordedRetainers.pprof]
      RecordedRetainers.answer_of(collector) { answer }
      expect(get("/retainers")[2]).to include("&lt;img src=x&gt;").and(satisfy { |html| !html.include?("<img") })
    end

    def hostile
      RecordedRetainers.answer[:sites].first.merge(classes: [{ name: "<img src=x>", bytes: 1.0 }])
    end

    it "is a refusal as text, in the form that go tool pprof understands" do
      RecordedRetainers.answer_of(collector) { raise MemprofilerPprof::RetainersError, "Memory is short." }
      expect(get("/retainers"))
        .to match([503, include("content-type" => "text/plain; charset=utf-8", "x-go-pprof" => "1"),
                   "Process #{Process.pid}: Memory is short. (MemprofilerPprof::RetainersError)\n"])
    end

    it "is for one at a time" do
      asked = Queue.new
      gate = Queue.new
      answer = [RecordedRetainers.json, RecordedRetainers.pprof]
      RecordedRetainers.answer_of(collector) { (asked << true) && gate.pop && answer }
      first = Thread.new { get("/retainers") }
      asked.pop
      expect(get("/retainers")).to match([503, Hash, /Somebody else is asking who holds the heap; try again later\./])
      gate << true
      expect(first.value.first).to eq(200)
    end

    it "does not ask for the sake of a HEAD request" do
      asked = RecordedRetainers.answer_of(collector)
      expect(get("/retainers", REQUEST_METHOD: "HEAD").first).to eq(200)
      expect(asked).to eq([])
    end
  end

  describe "pid" do
    it "can be this process's" do
      kept = allocate(3)
      expect(things("/heap?pid=#{Process.pid}", "retained_objects")).to eq(kept.size)
      expect(things("/heap?pid=all", "retained_objects")).to eq(kept.size)
    end

    it "can be no other's for a collector of one's own" do
      expect(get("/heap?pid=1")).to match([404, include("x-go-pprof" => "1"),
                                           "There is no process 1 here, only #{Process.pid}.\n"])
    end
  end

  describe "cmdline" do
    it "is the command, separated by NUL as in Go" do
      expect(get("/cmdline")).to match([200, include("content-type" => "text/plain; charset=utf-8"),
                                        [$PROGRAM_NAME, *ARGV].join("\0")])
    end

    it "may be of names in several encodings" do
      stub_const("ARGV", ["é", "ö".dup.force_encoding(Encoding::US_ASCII)])
      expect(get("/cmdline").last).to end_with("\0é\0ö")
    end
  end

  describe "an error" do
    # In the form that go tool pprof understands.
    def expect_error(response, status, message)
      expect(response).to match([status, include("content-type" => "text/plain; charset=utf-8", "x-go-pprof" => "1"),
                                 a_string_matching(message)])
    end

    { "gc=yes" => /gc must be 0 or 1, got "yes"/, "debug=2" => /debug must be 0 or 1, got "2"/, "gc" => /gc must be/,
      "seconds=0" => /seconds must be .* got "0"/, "seconds=-1" => /got "-1"/, "seconds=1.5" => /got "1\.5"/,
      "seconds=" => /seconds must/, "seconds=0x1" => /got "0x1"/, "gc=%" => /got "%"/,
      "seconds[]=1" => /\Aseconds must be given once, as seconds=…\.$/, "gc=0&gc=1" => /\Agc must be given once/,
      "pid=1.5" => /pid must be a process's id or all, got "1\.5"/,
      "gc=\u00e9" => /The query .* is malformed/ }.each do |query, message|
      it "is returned for #{query}" do
        expect_error(get("/heap?#{query}"), 400, message)
      end
    end

    { "report?by=foo" => 'by must be one of method, line, file, gem, class, got "foo".',
      "report?sort=x" => 'sort must be one of flat, cumulative, got "x".',
      "report?limit=1001" => 'limit must be a whole number from 1 to 1000, got "1001".',
      "diff?seconds=61" => 'seconds must be a whole number from 1 to 60 (max_seconds), got "61".',
      "retainers?timeout=601" => 'timeout must be a whole number from 1 to 600, got "601".',
      "retainers?format=html" => 'format must be one of text, json, pprof, both, got "html".',
      "retainers?in_process=2" => 'in_process must be 0 or 1, got "2".',
      "retainers?limit=0" => 'limit must be a whole number from 1 to 1000, got "0".',
      "report?value=x" =>
        'value must be one of allocations, allocations_size, retained_objects, retained_size, got "x".',
      "retainers?site=a&site=b" => "site must be given once, as site=….",
      "report?by%5B0%5D=class" => "by must be given once, as by=….",
      "flamegraph?by=gem" => 'by must be one of method, line, file, got "gem".' }.each do |request, message|
      it "is returned for #{request}" do
        expect_error(get("/#{request}"), 400, /\A#{Regexp.escape(message)}$/)
      end
    end

    it "is returned for unknown paths" do
      expect_error(get("/profiles"), 404, /no "profiles" here, only report, .*, heap, .* and cmdline/)
    end

    it "is returned while no collector runs" do
      collector.stop
      expect_error(get("/heap"), 503, /No collector is running .* Start one with MemprofilerPprof\.start/)
      expect(get("/heap")[1]).to include("retry-after" => "30")
    end

    it "is returned if the profiler is switched off, but for another collector" do
      allow(MemprofilerPprof.profiler).to receive(:enabled?).and_return(false)
      of_setting = described_class.new(authorize: ->(_) { true })
      %w[/ /heap /profile /cmdline].each do |path|
        expect_error(get(path, app: of_setting), 503, /The setting enabled is false/)
      end
      expect(get("/heap").first).to eq(200)
    end

    it "is returned for unauthorized requests" do
      endpoint = endpoint_of(authorize: ->(env) { env["HTTP_TOKEN"] == "x" })
      %w[/ /heap /heap?pid=all /allocs /delta_heap /report /diff /flamegraph /leaks /retainers /cmdline
         /nothing].each do |path|
        expect_error(get(path, app: endpoint), 403, /Not permitted: authorize refused .* --header/)
      end
      expect(get("/heap", app: endpoint, HTTP_TOKEN: "x").first).to eq(200)
    end

    it "says what permits requests if nothing does" do
      response = get("/heap", app: described_class.new, HTTP_HOST: "shop.example")
      expect_error(response, 403, /Not permitted\. Pass authorize: .* in development/)
    end

    it "is returned if there are too many requests at a time" do
      endpoint = endpoint_of(max_concurrent: 1)
      first, gate = waiting(endpoint) { get("/heap?seconds=9", app: endpoint) }
      response = get("/heap", app: endpoint)
      expect_error(response, 429, /max_concurrent is 1\. Try again later, or raise it/)
      %w[/report /diff /flamegraph /leaks /retainers].each { |path| expect(get(path, app: endpoint).first).to eq(429) }
      expect(response[1]).to include("retry-after" => "1")
      gate << true
      expect(first.value.first).to eq(200)
      expect(get("/heap", app: endpoint).first).to eq(200)
    end

    it "is returned if all readers are in use" do
      7.times { collector.open_reader }
      expect_error(get("/delta_heap"), 503, /a collector can have 7 open readers/)
    end

    it "is returned for other methods" do
      expect_error(get("/heap", REQUEST_METHOD: "POST"), 405, /GET and HEAD/)
    end
  end

  describe "HEAD" do
    it "has the headers, and takes no profile" do
      flushes = collector.stats[:flushes]
      status, headers, body = get("/heap?seconds=9", REQUEST_METHOD: "HEAD")
      expect([status, headers["content-type"], body]).to eq([200, "application/octet-stream", ""])
      expect(get("/heap?gc=x", REQUEST_METHOD: "HEAD").first).to eq(400)
      expect(get("/diff", REQUEST_METHOD: "HEAD")).to match([200, include("content-type" => /html/), ""])
      expect(collector.stats[:flushes]).to eq(flushes)
    end

    %w[/heap?pid=7 /profile?pid=7 /memory?pid=7 /report?value=foo /flamegraph?value=foo /leaks?value=foo
       /diff?seconds=1&value=foo].each do |path|
      it "has the status that GET has: #{path}" do
        expect(get(path, REQUEST_METHOD: "HEAD").first).to eq(get(path).first)
      end
    end

    it "has neither a body nor a length, whatever the answer" do
      answers = %w[/ /heap /heap?gc=x /nothing].map { |path| get(path, REQUEST_METHOD: "HEAD") }
      answers << get("/heap", app: endpoint_of(authorize: ->(_) { false }), REQUEST_METHOD: "HEAD")
      expect(answers.map(&:first)).to eq([200, 200, 400, 404, 403])
      expect(answers).to all(match([Integer, satisfy { |headers| !headers.key?("content-length") }, ""]))
    end

    it "has the type of what was asked for" do
      types = %w[/retainers?format=json /retainers?format=pprof /memory?format=json /memory?debug=1].map do |path|
        get(path, REQUEST_METHOD: "HEAD")[1]["content-type"]
      end
      expect(types).to match(["application/json", "application/octet-stream", "application/json", /plain/])
    end
  end

  it "uses the running collector if none is given, but none that is limited to a thread" do
    collector.stop.flush
    of_thread = new_collector(sample_rate: 1.0).start(only: :thread)
    endpoint = endpoint_of(collector: nil)
    expect(get("/heap", app: endpoint).first).to eq(503)
    new_collector(sample_rate: 0.25).start
    expect(get("/", app: endpoint)[2]).to include("at a rate of 0.25")
    expect(of_thread.running?).to be(true)
  end

  it "prefers the process's own collector" do
    outcome = run_ruby(<<~RUBY)
      require "ruby_memprofiler_pprof/rack"
      new_collector(sample_rate: 0.25).start
      MemprofilerPprof.start(sample_rate: 0.75)
      endpoint = MemprofilerPprof::Rack::Endpoint.new(authorize: ->(_) { true })
      request = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/" }
      rates = -> { print endpoint.call(request).last.join[/rate of (\\S+)\\./, 1], " " }
      rates.call
      MemprofilerPprof.stop
      rates.call
    RUBY
    expect(outcome.stdout).to eq("0.75 0.25 "), outcome.to_s
  end

  it "uses Go's names on request" do
    body = Pprof.decode(get("/heap", app: endpoint_of(sample_type_names: :go)).last)
    expect(body.type_names).to eq(%w[alloc_objects alloc_space inuse_objects inuse_space])
    expect([body.period_type.type, body.period_type.unit]).to eq(%w[space bytes])
    go = endpoint_of(sample_type_names: :go)
    meanwhile(go) { nil }
    expect(get("/diff?debug=1&seconds=9", app: go).last).to include("\ninuse_space: ")
  end

  it "does not appear in the profiles itself" do
    allocate(1)
    3.times { get("/heap?debug=1") }
    frames = Pprof.decode(collector.flush).samples.flat_map(&:names).uniq
    expect(frames.grep(/(?:Rack::StackText|MemprofilerPprof::Profile)/)).to eq([])
  end

  it "has values that are never negative" do
    allocate(10)
    get("/delta_heap")
    GC.start
    expect(Pprof.decode(get("/delta_heap").last).samples.flat_map { |sample| sample.values.values }.min).to be >= 0
  end

  describe ".new" do
    { { collector: 1 } => /collector must be a MemprofilerPprof::Collector, got 1/,
      { max_seconds: 0 } => /max_seconds must be an Integer from 1, got 0/,
      { max_concurrent: 6 } => /max_concurrent must be an Integer in 1\.\.5, got 6/,
      { sample_type_names: :perl } => /sample_type_names must be :ruby, :go or nil, got :perl/ }.each do |options, text|
      it "refuses #{options}" do
        expect { endpoint_of(**options) }.to raise_error(ArgumentError, text)
      end
    end
  end

  context "with a real server" do
    before { skip "Puma or Rack is not installed" unless HttpServer.available? }

    # As people mount it, checked by Rack's own linter.
    def serve(&)
      app = Rack::URLMap.new("/debug/pprof" => Rack::Lint.new(endpoint), "/" => ->(_) { [200, {}, ["shop"]] })
      HttpServer.serve(app, &)
    end

    it "can be read by go tool pprof", :go do
      kept = allocate(1000)
      serve do |url|
        filters = ["-focus=#allocate$", "-tagfocus=class=Thing"]
        result = Pprof::GoPprof.fetch("#{url}/debug/pprof/heap", "-top", "-unit=kB", *filters)
        expect(result.stdout).to match(/^Type: retained_size$.* 39\.06kB +\S+ +.*#{innermost}$/m), result.to_s
        delta = Pprof::GoPprof.fetch("#{url}/debug/pprof/allocs", "-top", "-seconds=1")
        expect(delta.stdout).to match(/Type: allocations_size\nTime: .*\nDuration: [1-9]/), delta.to_s
      end
      expect(kept.size).to eq(1000)
    end

    it "draws a flame graph in a browser" do
      skip "Chromium is not installed" unless Browser.program

      kept = allocate(1000)
      serve do |url|
        Browser.instance.open("#{url}/debug/pprof/flamegraph?by=line&value=retained_objects&app=1",
                              hash: "search=endpoint_spec")
        expect(Browser.instance.text("#summary")).to match(/retained objects \d/)
        expect(Browser.instance.text("#matches")).to match(/% matched/)
        expect(Browser.instance.errors.grep_v(/favicon/)).to eq([])
      end
      expect(kept.size).to eq(1000)
    end

    it "reports errors to go tool pprof", :go do
      serve do |url|
        result = Pprof::GoPprof.fetch("#{url}/debug/pprof/heep", "-top")
        expect(result.stderr).to include('404 Not Found - There is no "heep" here')
      end
    end

    it "can be scraped while other requests are served" do
      serve do |url|
        scrape, gate = waiting { HttpServer.get("#{url}/debug/pprof/delta_heap?seconds=9") }
        expect(HttpServer.get("#{url}/").body).to eq("shop")
        gate << true
        expect(Pprof.decode(scrape.value.body).duration_nanos).to be_positive
        head = Net::HTTP.start(URI(url).host, URI(url).port) { |http| http.head("/debug/pprof/heap") }
        expect([head.code, head.body]).to eq(["200", nil])
        expect(HttpServer.get("#{url}/debug/pprof").body).to include('href="/debug/pprof/heap"')
      end
    end
  end

  it "can be mounted in Rails" do
    outcome = run_ruby(<<~RUBY, gems: true)
      begin
        require "action_controller"
      rescue LoadError
        exit 77
      end
      require "rack/mock"
      require "ruby_memprofiler_pprof/rack"
      new_collector.start
      routes = ActionDispatch::Routing::RouteSet.new
      routes.draw { mount MemprofilerPprof::Rack::Endpoint.new(authorize: ->(_) { true }) => "/debug/pprof" }
      app = Rack::MockRequest.new(Rack::Lint.new(routes))
      puts app.get("/debug/pprof").body[/href="[^"]*"/], app.get("/debug/pprof/heap?debug=1").body[/.*?:/],
           app.get("/debug/pprof/heap").status
    RUBY
    skip "Rails is not installed" if outcome.status.exitstatus == 77
    expect(outcome.stdout.split("\n")).to eq(['href="/debug/pprof/report"', "heap profile:", "200"]), outcome.to_s
  end

  it "can be mounted beside a Sinatra app" do
    outcome = run_ruby(<<~RUBY, gems: true)
      begin
        require "sinatra/base"
      rescue LoadError
        exit 77
      end
      require "rack/mock"
      require "ruby_memprofiler_pprof/rack"
      new_collector.start
      shop = Sinatra.new { get("/") { "shop" } }
      app = Rack::Builder.app do
        map("/debug/pprof") { run MemprofilerPprof::Rack::Endpoint.new(authorize: ->(_) { true }) }
        run shop
      end
      request = Rack::MockRequest.new(app)
      puts request.get("/").body, request.get("/debug/pprof/heap").status
    RUBY
    skip "Sinatra is not installed" if outcome.status.exitstatus == 77
    expect(outcome.stdout.split("\n")).to eq(%w[shop 200]), outcome.to_s
  end

  describe "profile" do
    def cpu(body) = Pprof.decode(body)

    it "is the CPU time of some seconds" do
      waited = nil
      meanwhile do |seconds|
        waited = seconds
        200_000.times { Object.new }
      end
      status, headers, body = get("/profile?seconds=7")
      expect([status, headers["content-disposition"], waited]).to eq([200, 'attachment; filename="profile.pprof"', 7])
      expect(cpu(body).type_names).to eq(%w[samples cpu])
      expect(MemprofilerPprof::CPU).not_to be_running
    end

    it "takes 30 seconds by default, or as long as allowed" do
      waits = [endpoint, endpoint_of(max_seconds: 5)].map do |app|
        waited = nil
        meanwhile(app) { |seconds| waited = seconds }
        get("/profile", app: app)
        waited
      end
      expect(waits).to eq([30, 5])
    end

    it "needs no collector" do
      collector.stop
      meanwhile { nil }
      expect(get("/profile?seconds=1").first).to eq(200)
    end

    it "is text if asked" do
      meanwhile { 200_000.times { Object.new } }
      expect(get("/profile?seconds=1&debug=1")[1..]).to match([include("content-type" => /plain/), /^\S.* \d+$/])
    end

    it "is refused while another one is taken" do
      MemprofilerPprof::CPU.start
      expect(get("/profile?seconds=1")).to match([503, anything, /being taken already/])
    ensure
      MemprofilerPprof::CPU.stop
    end
  end
end
