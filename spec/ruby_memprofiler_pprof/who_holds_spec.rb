# frozen_string_literal: true

require "net/http"
require "tmpdir"

# Who holds what is alive, as users ask: with real programs, from their heaps to the words. Which kinds of holders there
# are, and what a child process may do wrong, is in the specs of the extension.
RSpec.describe "Who holds what is alive" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  after { programs.each { |pid| finish(pid) } }

  let(:memprofiler) { SubprocessHelpers::MEMPROFILER }
  let(:programs) { [] }
  # A constant that grows, whose line is the third, beside garbage.
  let(:leaky) { <<~RUBY }
    class Foo
      CACHE = {}
      def self.add(key) = CACHE[key] = Array.new(10) { "x" * 100 }
    end
    3000.times { |index| Foo.add(index) && Object.new }
    $stdout.syswrite(".")
  RUBY

  def finish(pid)
    Process.kill(:KILL, -pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  end

  # Starts a program under the profiler, and waits until it has written a byte.
  def start(*command, options: %w[--rate 1 --interval 1000], **keywords)
    reader, writer = IO.pipe
    programs << spawn({ "RUBYOPT" => nil }, *memprofiler, "run", *options, "--", *command,
                      out: writer, pgroup: true, **keywords)
    writer.close
    reader.read(1)
    programs.last
  end

  def start_leaky(*options)
    File.write("leaky.rb", "#{leaky}sleep\n")
    start(RbConfig.ruby, "leaky.rb", options: %w[--rate 1 --interval 1000 --socket a.sock] + options)
  end

  def cli(*arguments, **keywords)
    run_command(*memprofiler, *arguments, **keywords)
  end

  describe "in the program itself" do
    it "is told of the largest, even if none of it was sampled" do
      stub_const("Held", Class.new)
      stub_const("Held::TIMES", Array.new(3_000_000, 0.5))
      largest = new_collector(sample_rate: 0.0).start.retainers.largest.first
      expect(largest.phrase).to match(/\AHeld::TIMES.* → Array \(3,000,000\)\z/)
      expect(largest).to have_attributes(alike: 1, bytes: be_within(100).of(24_000_040))
    end

    it "is told of no others if certain objects are asked for" do
      collector = new_collector(sample_rate: 1.0).start
      expect([{ class_name: "String" }, { site: "a.rb" }].map { |asked| collector.retainers(**asked).largest })
        .to eq([[], []])
    end

    it "is the constant, with the exact size of what it retains" do
      stub_const("Held", Class.new)
      stub_const("Held::LIST", [])
      collector = new_collector(sample_rate: 1.0).start
      1000.times { Held::LIST << Object.new }
      site = collector.retainers(site: "who_holds_spec.rb", class_name: "Object").sites.first
      holder = site.holders.first
      expect([site.objects.value, holder.share.round(2)]).to eq([1000, 1.0])
      expect(holder.phrase).to match(/\AHeld::LIST.* → Array/)
      expect(holder.chain.last).to have_attributes(reference: "::LIST", text: "Array", elements: 1000)
      expect(holder.retained).to be_between(48_000, 200_000)
    end

    it "is each of several constants, however many" do
      outcome = run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        module Shop
          LISTS = %w[A B C D E F].map { |name| const_set(name, []) }
        end
        600.times { |index| Shop::LISTS[index % 6] << Object.new }
        GC.start
        puts collector.retainers(class_name: "Object").sites.first.holders.map { |holder| holder.phrase[/Shop::./] }
      RUBY
      expect(outcome.stdout.split.grep(/Shop/).size).to be >= 3, outcome.to_s
    end

    it "counts instance variables once, wherever the VM has them" do
      outcome = run_ruby(<<~'RUBY')
        collector = new_collector(sample_rate: 1.0).start
        TEXTS = Array.new(100) do
          "a".dup.tap { |text| 30.times { |index| text.instance_variable_set(:"@v#{index}", index) } }
        end
        GC.start
        all = collector.retainers.sites.select { |site| site.name == "-e:3" }
        profile = collector.flush(gc: true).profile
        lines = profile.top(by: :line, type: :retained_size).select { |site| site.name == "-e:3" }
        p all.sum(&:unreachable_bytes), all.sum { |site| site.bytes.value }.fdiv(lines.sum { |site| site.flat.value })
      RUBY
      expect(outcome.stdout.split.map(&:to_f)).to match([0, be_within(0.02).of(1)]), outcome.to_s
    end

    it "is a variable of the main thread, which may be of a fiber to the VM" do
      outcome = run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        Fiber.new { nil }.resume
        Thread.current[:cache] = Array.new(100) { Object.new }
        puts collector.retainers(class_name: "Object").sites.first.holders.first.phrase
      RUBY
      expect(outcome.stdout).to match(/\AThread.* local cache → Array \(100\)$/), outcome.to_s
    end

    it "is a fiber of the program's own, also while its thread runs it" do
      outcome = run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        thread = Thread.new do
          $fiber = Fiber.new { (list = Array.new(100) { Object.new }) && sleep && list }
          $fiber.resume
        end
        Thread.pass until thread.stop?
        thread = nil
        puts collector.retainers(class_name: "Object").sites.first.holders.first.phrase
      RUBY
      expect(outcome.stdout).to match(/\A\$fiber → Fiber at -e:3 local variable list /), outcome.to_s
    end

    it "names a line after the method that allocates most on it" do
      stub_const("HELD", [])
      collector = new_collector(sample_rate: 1.0).start
      HELD << Object.new; keep = proc { HELD << Object.new }; 1000.times(&keep) # rubocop:disable Style/Semicolon
      site = collector.retainers(class_name: "Object").sites.first
      expect([site.line, site.function]).to match([__LINE__ - 2, /\Ablock \(4 levels\)/])
    end

    it "is the same in the process, which says how long it held the GVL" do
      stub_const("Held::LIST", [])
      collector = new_collector(sample_rate: 1.0).start
      100.times { Held::LIST << Object.new }
      apart, inside = [false, true].map { |here| collector.retainers(site: "who_holds_spec.rb", in_process: here) }
      expect([apart, inside].map { |each| each.sites.first.holders.first.phrase }).to all(start_with("Held::LIST"))
      expect([apart.pause, apart.held, inside.pause, inside.held])
        .to match([be_positive, nil, nil, be_positive])
    end

    it "is not looked for where memory is short for the process itself" do
      outcome = run_ruby(<<~'RUBY')
        collector = new_collector(sample_rate: 1.0).start
        size = Integer(File.read("/proc/self/status")[/^VmSize:\s+(\d+)/, 1]) << 10
        Process.setrlimit(:AS, size + (64 << 20))
        begin
          collector.retainers(in_process: true)
        rescue MemprofilerPprof::RetainersError => e
          puts e.message
        end
      RUBY
      expect(outcome.stdout)
        .to match(/\Athis process may need \d+ MB more, and the limit on the address space .* leaves/), outcome.to_s
    end

    # As a reload may leave it.
    it "is what refers to an instance of a class that no constant leads to any more" do
      outcome = run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        class Old
          CACHE = Array.new(1000) { Object.new }
        end
        A = [Old.new]
        B = [Old.new]
        Object.__send__(:remove_const, :Old)
        holder = collector.retainers(class_name: "Object").sites.first.holders.first
        puts holder.phrase, holder.also
      RUBY
      expect(outcome.stdout.lines(chomp: true))
        .to contain_exactly(/\AA \(.* → elements → Old → class → Old\b/, /\AB \(.* → elements → Old → class → Old\b/),
            outcome.to_s
    end

    it "is a constant, also where compiled code has its value" do
      skip "this Ruby has no YJIT" unless defined?(RubyVM::YJIT)
      outcome = run_ruby(<<~RUBY, options: %w[--yjit])
        class Shop
          CACHE = {}
          def self.get(key) = CACHE[key]
          def self.put(key) = CACHE[key] = Object.new
        end
        collector = new_collector(sample_rate: 1.0).start
        1000.times { |key| Shop.put(key) && 100.times { Shop.get(key) } }
        holder = collector.retainers(class_name: "Object").sites.first.holders.first
        puts holder.phrase, holder.exclusive, holder.also
      RUBY
      expect(outcome.stdout).to match(/\AShop::CACHE \(constant.*\ntrue\n\z/), outcome.to_s
    end

    # As templates that are compiled again and again.
    it "is the class of methods that accumulate, or the Hash of blocks, not each one" do
      outcome = run_ruby(<<~'RUBY')
        collector = new_collector(sample_rate: 1.0).start
        class Templates; end
        FLAGS = {}
        200.times do |index|
          Templates.module_eval("def t#{index}(rows) = rows.map { |row| [row, \"row #{index} \#{row}\"] }")
          FLAGS[index] = eval("->(user) { [user].any? { |each| each == \"user #{index}\" } }")
        end
        # What compiling them has left is garbage.
        GC.start
        %w[FLAGS Templates].each do |name|
          holders = collector.retainers.sites.map { |site| site.holders.first }
          holder = holders.find { |each| each.phrase.include?(name) }
          puts holder.phrase, holder.share > 0.7
        end
      RUBY
      expect(outcome.stdout).to match(/\AFLAGS \(.*\) → Hash \(200\)\ntrue\nTemplates\ntrue\n\z/), outcome.to_s
    end

    it "is what refers to threads that have ended" do
      outcome = run_ruby(<<~'RUBY')
        collector = new_collector(sample_rate: 1.0).start
        def batch
          threads = Array.new(3) do |index|
            Thread.new { (Thread.current[:spans] = Array.new(100) { Object.new }) && nil }.tap { |it| it.name = "b#{index}" }
          end
          threads.each(&:join)
          yield
        end
        holder = batch { collector.retainers(class_name: "Object").sites.first.holders.first }
        puts holder.phrase, holder.alike
      RUBY
      ended = /Thread "b\d" \(ended\) local spans → Array \(100\)/
      expect(outcome.stdout)
        .to match(/local variable threads\b.* → Array \(3\) → elements → #{ended}\n3\n\z/), outcome.to_s
    end

    it "is no thread of the profiler's own" do
      outcome = run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        LIST = []
        Thread.new { 100.times { LIST << Object.new } }.join
        thread = MemprofilerPprof::BackgroundThread.start("own") { LIST.each { sleep } }
        Thread.pass until thread.stop?
        puts collector.retainers(class_name: "Object").sites.first.holders.first.also.grep(/own|background_thread/).inspect
      RUBY
      expect(outcome.stdout).to eq("[]\n"), outcome.to_s
    end

    it "is found in a heap with many references" do
      outcome = run_ruby(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        # In a copy they take more than is expected of so few objects.
        LIST = Array.new(7_000_000, "a")
        puts collector.retainers.sites.first.bytes.value.to_i
      RUBY
      expect(outcome.stdout.to_i).to be > 56_000_000, outcome.to_s
    end

    it "is found in the process when other Ractors have ended, not beside them" do
      outcome = run_ruby(<<~'RUBY', options: %w[-W0])
        collector = new_collector(sample_rate: 1.0).start
        ractor = Ractor.new { Ractor.receive }
        begin
          collector.retainers(in_process: true)
        rescue MemprofilerPprof::RetainersError => e
          puts e.message
        end
        ractor << nil
        ractor.respond_to?(:value) ? ractor.value : ractor.take
        Thread.pass until Ractor.count == 1
        puts collector.retainers(in_process: true).in_process?
      RUBY
      expect(outcome.stdout).to match(/\Athe heap cannot be read while there are other Ractors.*\ntrue\n/), outcome.to_s
    end

    it "adds nothing to what is sampled" do
      collector = new_collector(sample_rate: 1.0).start
      collector.retainers
      collector.flush
      collector.retainers
      collector.stop
      # But for what the VM itself remembers of a call.
      allocated = Pprof.decode(collector.flush).samples.select do |sample|
        sample[:allocations].positive? && !sample.labels["class"].start_with?("(")
      end
      expect(allocated.flat_map(&:names).grep(/retainers/)).to eq([])
    end

    it "is found beside names that are no UTF-8" do
      outcome = run_ruby(<<~'RUBY')
        LIST = []
        collector = new_collector(sample_rate: 1.0).start
        100.times { LIST << Object.new }
        thread = Thread.new { sleep }
        thread.name = "caf\xE9"
        eval("# encoding: binary\n$caf\xE9 = nil".b)
        puts collector.retainers(class_name: "Object").sites.first.holders.first.phrase
      RUBY
      expect(outcome.stdout).to start_with("LIST"), outcome.to_s
    end

    it "is found while the heap is compacted" do
      code = <<~RUBY
        LIST = []
        collector = new_collector(sample_rate: 1.0).start
        1000.times { LIST << Object.new }
        # Up to Ruby 3.1 a collection that has begun to mark would move what it has not pinned.
        GC.start
        GC.auto_compact = true
        answers = Array.new(5) do
          GC.start(immediate_sweep: false)
          collector.retainers(class_name: "Object")
        end
        print answers.map(&:attempts), answers.count { |answer| answer.sites.first.holders.first.phrase.include?("LIST") }
      RUBY
      outcome = run_ruby(code)
      expect(outcome.stdout).to eq("[1, 1, 1, 1, 1]5"), outcome.to_s
    end

    it "is said to be one of references by its profile" do
      new_collector(sample_rate: 1.0).start.retainers.write("a.pprof")
      profile = MemprofilerPprof::Profile.load("a.pprof")
      expect(profile.comments).to include("kind=retainers", "pid=#{Process.pid}", /\Agreatest_weight=/)
      expect(profile.sample_types.map(&:name)).to eq(%w[retained_objects retained_size])
      expect(MemprofilerPprof::Retainers.load("a.pprof").pid).to eq(Process.pid)
    end
  end

  describe "through the socket of a program" do
    it "is the constant that grows" do
      pid = start_leaky
      outcome = cli("why", "--site", "leaky.rb:3", "a.sock")
      expect(outcome).to have_attributes(stderr: "", success?: true)
      expect(outcome.stdout).to match(/\Aa\.sock: Process #{pid}, \d{4}-/)
        .and match(/^Paused the program for \S+ ms; the answer took/)
        .and match(/ allocated at .*leaky\.rb:3  (block in )?Foo\.add$/)
        .and match(/^  (100|9\d)% held by\n      Foo  .*\n      ::CACHE → Hash \(3,000\)  .*retains \S+ MiB$/)
    end

    it "is a profile that other tools read" do
      start_leaky
      expect(cli("why", "-o", "b.pprof", "a.sock").stderr).to eq("memprofiler why: wrote b.pprof\n")
      expect(cli("why", "--site", "leaky.rb:3", "b.pprof").stdout).to match(/^ +Foo::CACHE.* → Hash/)
      expect(cli("report", "--by", "method", "--sort", "cumulative", "b.pprof").stdout).to match(/Foo::CACHE.* → Hash/)
      expect(cli("flamegraph", "b.pprof").stdout).to eq("b.html\n")
    end

    it "is a profile that go tool pprof reads", :go do
      start_leaky
      cli("why", "-o", "b.pprof", "a.sock")
      result = Pprof::GoPprof.run(File.binread("b.pprof"), "-top", "-cum", "-tagfocus=class=String")
      expect(result.stdout).to match(/Type: retained_size.*Foo::CACHE.* → Hash$/m), result.to_s
    end

    it "is what top shows" do
      skip "tmux is not installed" unless Tmux.available?
      start_leaky
      Tmux.open do |terminal|
        wait_until { terminal.text.match?(/^\$/) }
        terminal.run(*memprofiler, "top", "--by", "line", "--sort", "bytes", "--focus", "Foo.add", "a.sock")
        wait_until { terminal.text.match?(/leaky\.rb:3/) }
        terminal.press("w", "Enter")
        wait_until(what: "the holder") { terminal.text.match?(/::CACHE .* Hash \(3,000\)/) }
      end
    end
  end

  describe "of a program that has ended" do
    # Puts a minute between two profiles, however long it took: of a field that comes twice, the last one counts.
    def space_out(paths)
      paths.sort_by { |path| MemprofilerPprof::Profile.load(path).time }.each.with_index(1) do |path, minute|
        times = Pprof::Maker.new(time: 1_000_000_000 + (60 * minute), duration: 60, types: [], weight: nil).to_s
        File.binwrite(path, Zlib.gzip(Zlib.gunzip(File.binread(path)) + times))
      end
    end

    it "is what was recorded beside its profiles" do
      File.write("leaky.rb", <<~RUBY)
        #{leaky.sub(/^3000.*\n/, "")}
        20.times do |turn|
          200.times { |index| Foo.add([turn, index]) }
          MemprofilerPprof.profiler.dump
          sleep 0.01 until Dir["tmp/profiles/*.pprof"].grep_v(/retainers/).size > turn
        end
      RUBY
      options = %w[--rate 1 --gc --interval 1000 --retainers-every 5]
      outcome = cli("run", *options, "--", RbConfig.ruby, "leaky.rb")
      expect(outcome).to be_success, outcome.to_s
      recorded, profiles = Dir["tmp/profiles/*.pprof"].partition { |path| path.include?("retainers") }
      expect(recorded.size).to be_between(1, 4)
      space_out(profiles)
      expect(cli("leaks", "--why").stdout).to match(/^growing .*leaky\.rb:3.*\n  \d+% held by .*Foo::CACHE.* → Hash/)
      expect(cli("why").stdout).to match(/^ +Foo::CACHE.* → Hash/)
    end
  end

  describe "under Puma", :slow do
    before do
      skip "Puma is not installed" unless UsableGems.include?("puma") && UsableGems.include?("rack")

      File.write("config.ru", <<~'RUBY')
        require "ruby_memprofiler_pprof/rack"
        KEPT = {}
        map("/debug/pprof") { run MemprofilerPprof::Rack::Endpoint.new(authorize: ->(_) { true }) }
        map("/meanwhile") do
          run(lambda do |env|
            before = KEPT.size
            MemprofilerPprof.collector.retainers(in_process: env["QUERY_STRING"] == "in_process")
            [200, { "content-type" => "text/plain" }, [(KEPT.size - before).to_s]]
          end)
        end
        run(lambda do |env|
          KEPT[KEPT.size] = "x" * 100
          [200, { "content-type" => "text/plain" }, ["#{Process.pid} ok"]]
        end)
      RUBY
      Dir.mkdir("s")
    end

    def serve(*options)
      environment = { "RUBYLIB" => SubprocessHelpers::LIB, "RUBYOPT" => nil }
      programs << spawn(environment, *memprofiler, "run", "--rate", "1", "--interval", "1000",
                        "--socket", "s/%{pid}.sock", "--", RbConfig.ruby, "-S", "puma", "-b", "tcp://127.0.0.1:0",
                        *options, "config.ru", out: "puma.log", err: %i[child out], pgroup: true)
      port = wait_until(what: "Puma's start") { File.read("puma.log")[%r{http://127\.0\.0\.1:(\d+)}, 1] }
      @url = "http://127.0.0.1:#{port}"
      wait_until { get("/").last.include?("ok") }
    end

    def get(path)
      response = Net::HTTP.get_response(URI("#{@url}#{path}"))
      [response.code, response.body]
    rescue SystemCallError, IOError => e
      [e.class.name, e.message]
    end

    # Sends requests while the block runs.
    # @return [Array<String>] the statuses
    def load
      statuses = Queue.new
      done = false
      threads = Array.new(4) do
        Thread.new { statuses << get("/").first until done }
      end
      yield
      done = true
      threads.each(&:join)
      Array.new(statuses.size) { statuses.pop }
    end

    { "a single process" => [[], 1], "a cluster" => [%w[-w 2], 3] }.each do |name, (options, processes)|
      it "is said by #{name}, and no request fails" do
        serve(*options)
        wait_until { Dir["s/*.sock"].size >= processes }
        answers = nil
        statuses = load { answers = Array.new(3) { cli("why", "--site", "config.ru", "s") } }
        expect(statuses.tally.keys).to eq(["200"])
        expect(answers.map(&:stderr)).to eq([""] * 3)
        expect(answers.last.stdout).to match(/^ +::KEPT → Hash \([\d,]+\)/).or match(/KEPT → Hash/)
        expect(answers.last.stdout.scan(%r{^s/\d+\.sock: Process}).size).to eq(processes)
      end
    end

    it "is found out while requests are served, unlike in the process itself" do
      # So many that reading them takes the time of many requests.
      File.write("config.ru", "MANY = Array.new(500_000) { Object.new }\n#{File.read("config.ru")}")
      serve
      served = Hash.new { |hash, query| hash[query] = get("/meanwhile?#{query}").last.to_i }
      load { %w[in_process copy].each { |query| served[query] } }
      expect(served["copy"]).to be > 2 * served["in_process"]
    end

    it "is said by each process of a cluster, whichever answers" do
      serve("-w", "2")
      wait_until { Dir["s/*.sock"].size == 3 }
      status, body = load { nil } && get("/debug/pprof/retainers?pid=all&format=text&site=config.ru")
      expect([status, body.force_encoding("UTF-8").scan(/^Process \d+/).uniq.size]).to eq(["200", 3])
    end
  end
end
