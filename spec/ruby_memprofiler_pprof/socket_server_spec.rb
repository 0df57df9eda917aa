# frozen_string_literal: true

require "socket"
require "stringio"
require "tmpdir"
require "ruby_memprofiler_pprof/socket_server"

RSpec.describe MemprofilerPprof::SocketServer, :threads do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  let(:profiler) { MemprofilerPprof::DefaultProfiler.new({}) }

  after { profiler.stop }

  def serve(socket: "a.sock", **options)
    profiler.start(socket: socket, sample_rate: 1, **options)
  end

  # Everything there is to read until the other side hangs up.
  def ask(text, path: "a.sock")
    UNIXSocket.open(path) do |socket|
      socket.write(text)
      socket.read
    end
  end

  def get(target, path: "a.sock")
    ask("GET #{target} HTTP/1.1\r\nHost: x\r\n\r\n", path: path)
  end

  def profile(target = "/heap")
    MemprofilerPprof::Profile.load(StringIO.new(get(target).split("\r\n\r\n", 2).last))
  end

  # Threads that listen or serve.
  def threads
    Thread.list.select { |thread| thread.name == "ruby_memprofiler_pprof socket" }
  end

  def total(profile, type)
    profile.tag(class: "Thing").total(type).value
  end

  it "leaves no file behind if the thread that opens it is killed" do
    left = Array.new(100) do |number|
      path = MemprofilerPprof::FilePattern.new("#{number}.sock")
      server = described_class.new(profiler, path, logger: FakeLogger.new)
      opening = Thread.new { server.start }
      sleep(rand * 0.001)
      opening.kill.join
      server.stop
      File.exist?("#{number}.sock")
    end
    expect(left).not_to include(true)
  end

  describe "the profiles" do
    before { stub_const("Thing", Class.new) }

    it "contain what is alive" do
      serve
      kept = Array.new(7) { Thing.new }
      expect(total(profile, :retained_objects)).to eq(kept.size)
    end

    it "contain the allocations of some seconds, and the flushers miss none" do
      serve
      kept = Array.new(7) { Thing.new }
      opened, allocated = gate_flushes
      asked = Thread.new { profile("/heap?seconds=1") }
      opened.pop
      kept += Array.new(5) { Thing.new }
      allocated << true
      expect([total(asked.value, :allocations), asked.value.duration]).to match([5, be >= 1])
      expect(total(profiler.collector.flush.profile, :allocations)).to eq(kept.size)
    end

    # Queues: one reports that a reader was opened, the other is awaited before the reader is flushed.
    def gate_flushes
      collector = profiler.collector
      opened = Queue.new
      gate = Queue.new
      allow(collector).to receive(:open_reader).and_wrap_original do |open, &block|
        open.call do |reader|
          allow(reader).to(receive(:flush).and_wrap_original { |flush, **options| gate.pop && flush.call(**options) })
          opened << true
          block.call(reader)
        end
      end
      [opened, gate]
    end

    it "exclude what serving them allocates" do
      serve
      2.times { profile }
      files = profile.samples.flat_map { |sample| sample.stack.map(&:file) }
      expect(files.grep(%r{pprof/socket_server(/|\.rb)})).to eq([])
    end

    it "are taken without a garbage collection, although files are written with one" do
      serve(gc: true)
      profile
      expect(collects_garbage? { profile }).to be(false)
    end
  end

  describe "a response" do
    before { serve }

    {
      "GET /nope HTTP/1.0\r\n\r\n" => %r{\AHTTP/1.0 404 .*There is only /heap, }m,
      "GET /heap?seconds=61 HTTP/1.0\r\n\r\n" => %r{\AHTTP/1.0 400 .*from 1 to 60, got "61"}m,
      "GET /heap?seconds=x HTTP/1.0\r\n\r\n" => %r{\AHTTP/1.0 400 },
      "POST /heap HTTP/1.0\r\n\r\n" => %r{\AHTTP/1.0 405 },
      "\xFF\0\r\n\r\n" => %r{\AHTTP/1.0 405 },
      "\r\n\r\n" => %r{\AHTTP/1.0 405 },
      "GET /#{"x" * 10_000}" => %r{\AHTTP/1.0 400 .*too long}m
    }.each do |request, answer|
      it "to #{request[0, 30].inspect} says what is wrong" do
        expect(ask(request)).to match(answer)
      end
    end

    it "says that the profiler is not running" do
      profiler.toggle
      expect(get("/heap")).to match(/\AHTTP.1.0 503 .*does not run in process #{Process.pid}/m)
    end
  end

  describe "other answers" do
    before { serve }

    it "are the profiles that the endpoint has" do
      profiles = ["/allocs", "/delta_heap", "/heap?gc=1&names=go"].map { |target| profile(target) }
      expect(profiles.map { |profile| profile.default_sample_type.name })
        .to eq(%w[allocations_size retained_size inuse_space])
    end

    it "are who holds what, in the form that is asked for" do
      RecordedRetainers.answer_of(profiler.collector)
      types = %w[text json pprof].to_h { |form| [form, get("/retainers?format=#{form}")[/^Content-Type: (.*)\r/, 1]] }
      expect(types).to eq("text" => "text/plain; charset=utf-8", "json" => "application/json",
                          "pprof" => "application/octet-stream")
      expect(get("/retainers").force_encoding("UTF-8")).to match(/^Process #{Process.pid}, .*@cards → Hash/m)
    end

    it "are why it is not known who holds what" do
      RecordedRetainers.answer_of(profiler.collector) { raise MemprofilerPprof::RetainersError, "Memory is short." }
      expect(get("/retainers")).to match(/\AHTTP.1.0 503 .*^Memory is short\. \(MemprofilerPprof::RetainersError\)$/m)
    end

    it "are where the memory is, as text or JSON" do
      RecordedMemory.answer_of(profiler.collector)
      expect(get("/memory")).to match(%r{^Content-Type: text/plain.*^204 MiB resident}m)
      expect(get("/memory?format=json")).to match(%r{^Content-Type: application/json.*"rss_bytes":213647360}m)
    end

    it "that fail are logged, also if the system is why" do
      allow(profiler.collector).to receive(:peek).and_raise(Errno::ENOENT)
      expect { get("/heap") }.to output(/a profile was not served: Errno::ENOENT/).to_stderr
    end

    it "are the leaks, as text" do
      expect(get("/leaks?by=class&limit=3"))
        .to match(%r{^Content-Type: text/plain.*^Process #{Process.pid}: 1 profile so far}m)
    end
  end

  describe "its siblings" do
    def server(path)
      UNIXServer.new(path).tap { |server| servers << server }
    end

    let(:servers) { [] }

    after { servers.each(&:close) }

    it "are the processes with the same setting that listen" do
      serve(socket: "mem-%{pid}.sock")
      %w[mem-1.sock mem-2.sock other-3.sock mem-x.sock].each { |path| server(path) }
      server("mem-4.sock").close
      File.write("mem-5.sock", "")
      expect(profiler.siblings)
        .to eq([1, 2, Process.pid].to_h { |pid| [pid, File.join(File.realpath("."), "mem-#{pid}.sock")] })
    end

    it "are not another user's" do
      serve(socket: "mem-%{pid}.sock")
      server("mem-1.sock")
      # Only root could make one.
      allow(File).to receive(:lstat).and_wrap_original do |lstat, path|
        path.end_with?("mem-1.sock") ? instance_double(File::Stat, socket?: true, owned?: false) : lstat.call(path)
      end
      expect(profiler.siblings.keys).to eq([Process.pid])
    end

    it "are unknown where there is no socket, or a name for one process alone" do
      expect(profiler.siblings).to eq({})
      serve
      expect(profiler.siblings).to eq({})
    end
  end

  describe "clients" do
    before { serve }

    # What a client receives that sends this, and reads nothing before the server is done with it.
    def exchange(request, answer = "")
      client, server = UNIXSocket.pair
      client.write(request)
      described_class::Exchange.new(server).call { answer }
      server.close
      client.read
    ensure
      client.close
    end

    def be_patient
      stub_const("#{described_class}::Exchange::CLIENT_TIMEOUT", 600)
    end

    it "that send nothing, or half a request, are disconnected" do
      stub_const("#{described_class}::Exchange::CLIENT_TIMEOUT", 0.01)
      expect([ask(""), exchange("GET /he")]).to eq(["", ""])
    end

    it "that do not read are disconnected" do
      stub_const("#{described_class}::Exchange::CLIENT_TIMEOUT", 0.01)
      expect(exchange("GET /heap HTTP/1.0\r\n\r\n", "x" * 10_000_000))
        .to start_with("HTTP/1.0 200 OK").and have_attributes(bytesize: be < 10_000_000)
    end

    it "that leave release their reader" do
      closed = Queue.new
      allow(profiler.collector).to receive(:open_reader).and_wrap_original do |open, &block|
        open.call(&block)
      ensure
        closed << true
      end
      6.times do
        UNIXSocket.open("a.sock") { |socket| socket.write("GET /heap?seconds=60 HTTP/1.0\r\n\r\n") }
      end
      wait_until { closed.size == 6 }
      readers = Array.new(7) { profiler.collector.open_reader }
      expect(readers.size).to eq(7)
    end

    # Whether as many are served as there may be.
    def full?
      threads.any? { |thread| thread.backtrace&.first&.include?("push") }
    end

    it "leave readers for delta_heap, leaks and two requests at the endpoint" do
      opened = Queue.new
      allow(profiler.collector).to receive(:open_reader).and_wrap_original do |open, &block|
        open.call { |reader| (opened << true) && block.call(reader) }
      end
      sockets = Array.new(5) { UNIXSocket.new("a.sock") }
      sockets.each { |socket| socket.write("GET /heap?seconds=60 HTTP/1.0\r\n\r\n") }
      wait_until { full? && opened.size == threads.size - 1 }
      allow(profiler.collector).to receive(:open_reader).and_call_original
      expect(Array.new(4) { profiler.collector.open_reader }.size).to eq(4)
    ensure
      sockets.each(&:close)
    end

    it "beyond the third wait" do
      be_patient
      sockets = Array.new(3) { UNIXSocket.new("a.sock") }
      asked = Thread.new { get("/heap") }
      wait_until { full? }
      expect([threads.size, asked]).to match([1 + sockets.size, be_alive])
      sockets.shift.close
      expect(asked.value).to start_with("HTTP/1.0 200")
    ensure
      sockets.each(&:close)
    end

    it "are not kept waiting by a slow one" do
      be_patient
      UNIXSocket.open("a.sock") { expect(Thread.new { get("/heap") }.join(60)&.value).to start_with("HTTP/1.0 200") }
    end
  end

  describe "the socket" do
    it "is for its owner only" do
      serve
      expect(File.stat("a.sock").then { |stat| [stat.socket?, stat.mode & 0o777] }).to eq([true, 0o600])
    end

    it "replaces one on which nobody listens" do
      UNIXServer.new("a.sock").close
      serve
      expect(get("/heap")).to start_with("HTTP/1.0 200")
    end

    it "comes in place of those that ended processes have left behind" do
      UNIXServer.new("mem-1.sock").close
      UNIXServer.new("other-3.sock").close
      UNIXServer.open("mem-2.sock") do
        serve(socket: "mem-%{pid}.sock")
        expect(Dir.children(".")).to contain_exactly("mem-2.sock", "other-3.sock", "mem-#{Process.pid}.sock")
      end
    end

    it "does not replace one on which somebody listens, and is not noticed there" do
      server = UNIXServer.new("a.sock")
      expect { serve }.to output(/no socket .*a\.sock: Address already in use/).to_stderr
      expect([profiler.running?, server.accept_nonblock(exception: false)]).to eq([true, :wait_readable])
    ensure
      server.close
    end

    it "does not replace a file or a link" do
      File.write("a.sock", "mine")
      File.symlink("gone", "b.sock")
      expect { serve }.to output(/no socket .*: File exists/).to_stderr
      expect { serve(socket: "b.sock") }.to output(/no socket .*: File exists/).to_stderr
      expect([File.read("a.sock"), File.readlink("b.sock")]).to eq(%w[mine gone])
    end

    it "refuses a name that is too long" do
      expect { serve(socket: "a" * 200) }.to output(/no socket .*: too long unix socket path/).to_stderr
      expect(profiler).to be_running
    end

    it "creates the directory, which only its owner can enter" do
      expect { serve(socket: "new/dir/a.sock") }.not_to output.to_stderr
      expect([File.socket?("new/dir/a.sock"), File.stat("new/dir").mode & 0o777]).to eq([true, 0o700])
    end

    it "runs without a socket where no directory can be created" do
      File.write("file", "")
      expect { serve(socket: "file/a.sock") }.to output(/no socket .*: Not a directory/).to_stderr
      expect(profiler).to be_running
    end

    it "is removed by a stop, and created again by a start" do
      serve
      profiler.stop
      expect(File.exist?("a.sock")).to be(false)
      serve
      expect(get("/heap")).to start_with("HTTP/1.0 200")
    end

    it "is removed by a stop that has to abandon a client's thread" do
      stub_const("#{described_class}::JOIN_TIMEOUT", 0.01)
      busy = Queue.new
      gate = Queue.new
      exchange = instance_double(described_class::Exchange)
      allow(described_class::Exchange).to receive(:new).and_return(exchange)
      allow(exchange).to receive(:call) do
        busy << true
        sleep
      ensure
        gate.pop
      end
      serve
      UNIXSocket.open("a.sock") do
        busy.pop
        expect(Thread.new { profiler.stop }.join(60)).not_to be_nil
      end
      expect(File.exist?("a.sock")).to be(false)
      gate << true
      wait_until { threads.empty? }
    end

    it "is not removed if it now belongs to another" do
      serve
      File.unlink("a.sock")
      server = UNIXServer.new("a.sock")
      profiler.stop
      expect(File.exist?("a.sock")).to be(true)
    ensure
      server.close
    end

    # As the gem daemons does, but for the files of RSpec.
    def close_all
      ObjectSpace.each_object(Socket, &:close)
    end

    # Not only bound.
    def listening?
      UNIXSocket.open("a.sock", &:close)
      true
    rescue Errno::ENOENT, Errno::ECONNREFUSED
      false
    end

    it "is opened again, as often as the program closes it" do
      stub_const("#{described_class}::PAUSE", 0.01)
      serve
      answers = Array.new(4) do
        close_all
        wait_until { threads.none? || listening? }
        get("/heap")[/.*/]
      end
      expect(answers.uniq).to eq(["HTTP/1.0 200 OK\r"])
    end

    it "is opened again if the program closes its file descriptor" do
      stub_const("#{described_class}::PAUSE", 0.01)
      broken = instance_double(described_class::Listener, remove: nil)
      allow(broken).to receive(:accept).and_raise(Errno::EBADF)
      listeners = [broken]
      allow(described_class::Listener).to receive(:new).and_wrap_original do |new, path|
        listeners.shift || new.call(path)
      end
      serve
      wait_until { threads.none? || listening? }
      expect(get("/heap")).to start_with("HTTP/1.0 200")
    end

    it "is logged as missing if it cannot be opened again" do
      stub_const("#{described_class}::PAUSE", 0.01)
      serve(socket: "directory/a.sock")
      File.rename("directory", "away")
      File.write("directory", "")
      expect { close_all && wait_until { threads.none? } }.to output(/no socket any more: the program has/).to_stderr
    end

    it "stays closed after a stop that could not kill its thread" do
      stub_const("#{described_class}::PAUSE", 0.01)
      allow(MemprofilerPprof::BackgroundThread).to receive(:start) do |name, &work|
        # Thread#kill is an Integer there.
        Thread.new { Thread.handle_interrupt(Integer => :never, &work) }.tap { |thread| thread.name = name }
      end
      serve
      profiler.stop
      expect([threads, Dir.children(".")]).to eq([[], []])
    end

    it "moves when the setting changes" do
      profiler.configure { |config| config.socket = "a.sock" }
      profiler.start
      profiler.configure { |config| config.socket = "b.sock" }
      expect(Dir.children(".")).to eq(["b.sock"])
    end
  end

  describe "a process" do
    let(:start) { "MemprofilerPprof.start(socket: ARGV.first)\n" }

    # Asks from outside, and returns the process id according to the profile.
    let(:asking) { <<~RUBY }
      require "socket"; require "stringio"
      def served_by(path)
        body = UNIXSocket.open(path) { |s| s.write("GET /heap HTTP/1.0\\r\\n\\r\\n"); s.read }.split("\\r\\n\\r\\n", 2).last
        MemprofilerPprof::Profile.load(StringIO.new(body)).comments.find { |it| it.start_with?("pid=") }[4..].to_i
      rescue StandardError => e
        e.class
      end
    RUBY

    def sockets
      Dir["*.sock"]
    end

    def run(code, path = "a.sock")
      run_ruby("#{asking}#{start}#{code}", args: [path]).tap { |outcome| expect(outcome.stderr).to eq("") }.stdout
    end

    it "removes its socket at exit" do
      run("")
      expect(sockets).to eq([])
    end

    it "removes it when it is asked to terminate" do
      run("trap('TERM') { exit }; Process.kill(:TERM, $$); sleep")
      expect(sockets).to eq([])
    end

    it "survives a client that leaves before its answer, though SIGPIPE would end it" do
      expect(run(<<~RUBY)).to eq("alive")
        trap("PIPE", "SYSTEM_DEFAULT")
        client, server = UNIXSocket.pair
        client.write("GET /heap HTTP/1.0\\r\\n\\r\\n")
        MemprofilerPprof::SocketServer::Exchange.new(server).call { client.close.to_s }
        print "alive"
      RUBY
    end

    it "continues to serve when it forks, and its child does not" do
      expect(run(<<~RUBY)).to eq("[true, true]true")
        MemprofilerPprof::SocketServer.prepend(Module.new { def sleep(*) = nil })
        reader, writer = IO.pipe
        # The child tries in vain to take over the socket, and lives on.
        child = fork do
          reader.close
          Thread.list.find { |thread| thread.name.to_s.include?("socket") }&.join
          writer.write(".")
          sleep
        end
        before = served_by("a.sock") == $$
        reader.read(1)
        print [before, served_by("a.sock") == $$].inspect
        Process.kill(:KILL, child)
        Process.wait(child)
        print File.exist?("a.sock")
      RUBY
      expect(sockets).to eq([])
    end

    it "leaves nothing open in a child that outlives it" do
      run(<<~RUBY)
        MemprofilerPprof::SocketServer.prepend(Module.new { def sleep(*) = super() })
        reader, writer = IO.pipe
        fork do
          [STDOUT, STDERR].each { |io| io.reopen(File::NULL) }
          File.write("child", $$)
          [reader, writer].each(&:close)
          sleep
        end
        writer.close
        reader.read
        Process.kill(:KILL, $$)
      RUBY
      expect { UNIXSocket.new("a.sock") }.to raise_error(Errno::ECONNREFUSED)
      # It is still running.
      Process.kill(:KILL, Integer(File.read("child")))
    end

    it "has a child with its own socket if the name contains the pid" do
      expect(run(<<~'RUBY', "%{pid}.sock")).to eq("true")
        reader, writer = IO.pipe
        child = fork { writer.close; reader.read }
        reader.close
        sleep 0.01 until File.socket?("#{child}.sock") && served_by("#{child}.sock") != Errno::ECONNREFUSED
        print [child, $$].map { |pid| served_by("#{pid}.sock") } == [child, $$]
        writer.close
        Process.wait(child)
      RUBY
      expect(sockets).to eq([])
    end

    it "has a child with its own socket that closes all files, its socket among them" do
      expect(run(<<~'RUBY', "%{pid}.sock")).to eq("true")
        closed, closing = IO.pipe
        reader, writer = IO.pipe
        child = fork do
          writer.close
          sleep 0.01 until served_by("#{$$}.sock") == $$
          kept = [$stdin, $stdout, $stderr, closing, reader]
          ObjectSpace.each_object(IO) { |io| kept.include?(io) || io.close rescue nil }
          closing.write(".")
          reader.read
        end
        closing.close
        closed.read(1)
        print 6000.times.any? { served_by("#{child}.sock") == child || (sleep(0.01) && false) }
        writer.close
        Process.wait(child)
      RUBY
    end

    { "daemon" => "Process.daemon", "daemon that was forked twice" => "exit if fork; Process.setsid; exit if fork" }
      .each do |name, code|
      it "serves when it has become a #{name}" do
        expect(run(<<~RUBY, File.join(Dir.pwd, "a.sock"))).to eq("")
          # What its parents write takes longer than a try.
          at_exit { sleep(1.5) unless File.exist?("pid") }
          $stdout.reopen(File::NULL)
          $stderr.reopen(File::NULL)
          path = ARGV.first
          directory = Dir.pwd
          #{code}
          served = 6000.times.any? { served_by(path) == $$ || (sleep(0.01) && false) }
          File.write(File.join(directory, "pid"), served.to_s)
        RUBY
        wait_until { File.size?("pid") }
        expect(File.read("pid")).to eq("true")
        wait_until { sockets.empty? }
      end
    end
  end
end
