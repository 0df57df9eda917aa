# frozen_string_literal: true

require "zlib"
require_relative "../support/compiled_extension"

RSpec.describe MemprofilerPprof::CPU, :threads do
  after { described_class.stop }

  # @param clock [Integer]
  def seconds(clock = Process::CLOCK_THREAD_CPUTIME_ID) = Process.clock_gettime(clock)

  # @return [Float] seconds of this thread's CPU time that the block took
  def time
    before = seconds
    yield
    seconds - before
  end

  # Uses CPU time of this thread. M:N threads take turns on a native thread, whose clock goes on meanwhile, so no piece
  # counts for more than a millisecond. Beside other busy processes few ticks come in here: the kernel gives the CPU to
  # one of them while the clock is read, before its next tick.
  def spin(time)
    before = seconds
    while time.positive?
      1000.times { nil }
      now = seconds
      time -= (now - before).clamp(0, 0.001)
      before = now
    end
  end

  # Repeats the block until there were so many ticks. Beside other busy processes the kernel may send a thread none in
  # 100 ms of its CPU time.
  def until_ticked(number)
    last = described_class.stats[:signals] + number
    yield until described_class.stats[:signals] >= last
  end

  # Uses CPU time of this thread, and then goes on until that was noticed.
  def toil(time)
    spin(time)
    until_ticked(3) { 1000.times { nil } }
  end

  def profile(**options, &)
    Pprof.decode(described_class.profile(frequency: 1000, **options, &))
  end

  # Seconds of the samples with all of these frames and labels.
  def seconds_in(profile, *frames, **labels)
    found = profile.samples.select do |sample|
      frames.all? { |frame| sample.names.any? { |name| name.end_with?(frame) } } && labels.all? do |key, value|
        sample.labels[key.to_s] == value
      end
    end
    found.sum { |sample| sample[:cpu] } / 1e9
  end

  # What to show when an example fails.
  def text(profile)
    profile.samples.map { |sample| "#{sample[:cpu]} ns, #{sample[:samples]} samples: #{sample.names}" }.join("\n")
  end

  def fraction(profile, ...) = seconds_in(profile, ...) / seconds_in(profile)

  # Why the function that ran at a tick is not known, if it is not.
  def later_stack
    "a native thread runs several threads" if ENV["RUBY_MN_THREADS"] == "1"
  end

  # Random bytes, which take long to compress.
  def bytes = @bytes ||= Random.new(1).bytes(1_000_000)

  it "counts samples and nanoseconds, with a period, as Go does" do
    result = profile { spin 0.05 }
    expect(result.sample_types.map(&:to_a)).to eq([%w[samples count], %w[cpu nanoseconds]])
    expect([result.period_type.to_a, result.period]).to eq([%w[cpu nanoseconds], 1_000_000])
  end

  it "says of which process it is" do
    expect(profile { spin 0.01 }.comments).to include("pid=#{Process.pid}", /\Aruby #{RUBY_VERSION} /)
  end

  it "adds up to the CPU time of the process" do
    outer = seconds(Process::CLOCK_PROCESS_CPUTIME_ID)
    described_class.start(frequency: 1000)
    inner = seconds(Process::CLOCK_PROCESS_CPUTIME_ID)
    spin 0.3
    inner = seconds(Process::CLOCK_PROCESS_CPUTIME_ID) - inner
    result = Pprof.decode(described_class.flush)
    outer = seconds(Process::CLOCK_PROCESS_CPUTIME_ID) - outer
    expect(seconds_in(result)).to be_between(inner, outer)
  end

  it "counts no thread twice, however it ends" do
    outer = seconds(Process::CLOCK_PROCESS_CPUTIME_ID)
    result = profile do
      20.times do |number|
        Thread.new do
          Thread.current.report_on_exception = false
          spin 0.01
          raise "expected" if number.odd?
        end.join
      rescue RuntimeError
        nil
      end
    end
    outer = seconds(Process::CLOCK_PROCESS_CPUTIME_ID) - outer
    expect(seconds_in(result)).to be_between(0.2, outer)
    expect(seconds_in(result, "(native threads)")).to be < 0.02
  end

  it "tells methods and blocks apart" do
    stub_const("Work", Class.new do
      def little = 300_000.times { nil }
      def much = [1].each { 900_000.times { nil } }
    end)
    work = Work.new
    result = profile { until_ticked(300) { [work.little, work.much] } }
    # 300 ticks have a standard deviation of 2.5 %.
    expect(fraction(result, "Work#little")).to be_within(0.13).of(0.25), text(result)
    expect(fraction(result, "block in Work#much")).to be_within(0.13).of(0.75), text(result)
  end

  it "gives C functions what they use" do
    counted = summed = 0
    result = profile do
      until_ticked(300) do
        counted += time { 300_000.times { nil } }
        summed += time { 100.times { bytes.sum } }
      end
    end
    expect(fraction(result, "String#sum")).to be_within(0.13).of(summed / (counted + summed)), text(result)
  end

  # In a method, since `$~` would keep the string as long as the example's block, which is to the end.
  def replace(string, &) = string.gsub(/[bc]/, &)

  it "gives C functions what they use between calls of their block" do
    skip later_stack if later_stack
    string = "#{"a" * 200_000}b" * 20
    result = profile { until_ticked(100) { replace(string) { nil } } }
    time_in = lambda do |frame|
      result.samples.sum { |sample| sample.names.first.include?(frame) ? sample[:cpu] : 0 }
    end
    expect(time_in["String#gsub"]).to be > 4 * time_in["block in"], text(result)
  end

  it "tells a C function and the one that its block calls apart" do
    skip later_stack if later_stack
    string = "#{"a" * 12_000_000}b" * 3
    data = bytes * 52
    sum = gsub = 0
    result = profile do
      until_ticked(200) { gsub += time { replace(string) { (sum += time { data.sum }) && nil } } }
    end
    expect(fraction(result, "String#sum")).to be_within(0.13).of(sum / gsub), text(result)
  end

  it "shows garbage collections on top of what they were for" do
    result = profile { until_ticked(50) { GC.start } }
    expect(fraction(result, "GC.start", "(garbage collection)")).to be > 0.5
  end

  it "labels what runs without the GVL" do
    result = profile { until_ticked(50) { Zlib.deflate(bytes) } }
    expect(fraction(result, "Zlib.deflate", gvl: "released")).to be > 0.5
    expect(seconds_in(result, gvl: "released")).to eq(seconds_in(result, "Zlib.deflate", gvl: "released"))
  end

  it "charges a flush's work without the GVL to the flush" do
    skip later_stack if later_stack
    collector = new_collector(sample_rate: 1.0).start
    kept = Array.new(20_000) { "x" }
    result = profile { until_ticked(50) { collector.flush } }
    expect(kept.size).to eq(20_000)
    called = ["GC.total_time", "Collector#flush"].map { |name| seconds_in(result, name, gvl: "released") }
    expect(called).to match([0, be > 0]), text(result)
  end

  it "sees threads that began before it and those that begin later" do
    queue = Queue.new
    before = Thread.new { queue.pop && until_ticked(50) { digest } }
    result = profile do
      queue << true
      [before, Thread.new { until_ticked(50) { deflate } }].each(&:join)
    end
    # Where M:N threads share a native thread, a tick gives one of them what both have used since the last.
    expect([fraction(result, "#digest"), fraction(result, "#deflate")]).to all(be > 0.1), text(result)
  end

  def digest = toil(0.1)
  def deflate = toil(0.1)

  it "sees threads that end by an exception" do
    result = profile do
      Thread.new do
        Thread.current.report_on_exception = false
        toil 0.1
        raise "expected"
      end.join
    rescue RuntimeError
      GC.start
    end
    expect(seconds_in(result, "#toil")).to be > 0.05
  end

  it "has a line for threads that are not Ruby's" do
    skip CompiledExtension.missing if CompiledExtension.missing
    require CompiledExtension.new("native_thread").library.delete_suffix(".so")
    result = profile { NativeThread.spin(0.2) { sleep 0.01 } }
    expect(seconds_in(result, "(native threads)", "spinner")).to be_within(0.02).of(0.2)
  end

  it "has the program's labels and threads' names" do
    result = profile(thread_names: true) { MemprofilerPprof.with_labels(job: "one") { toil 0.1 } }
    expect(seconds_in(result, job: "one", thread: "main")).to be > 0.05
  end

  it "has the process's tags" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof.configure { |config| config.tags = { release: "1.2" } }
      puts MemprofilerPprof::CPU.profile { nil }.profile.comments.grep(/tag/)
    RUBY
    expect(outcome.stdout).to eq("tag.release=1.2\n")
  end

  it "leaves labels out if asked to" do
    result = profile(labels: false) { MemprofilerPprof.with_labels(job: "one") { toil 0.05 } }
    expect(result.samples.flat_map { |sample| sample.labels.keys }).not_to include("job")
  end

  it "samples one thread only if asked to" do
    result = profile(only: :thread) do
      Thread.new { spin 0.1 }.join
      deflate
    end
    expect([seconds_in(result, "#spin") - seconds_in(result, "#deflate", "#spin"), seconds_in(result, "(other)")])
      .to eq([0, 0])
    expect(seconds_in(result, "#deflate")).to be > 0.05
  end

  it "says what it does not know as no tick came" do
    result = Pprof.decode(described_class.profile(frequency: 1) { 1000.times { Object.new } })
    expect(seconds_in(result, "(not sampled)")).to be > seconds_in(result, "(other)")
  end

  it "begins another interval with each flush" do
    described_class.start(frequency: 1000)
    digest
    first = Pprof.decode(described_class.flush)
    deflate
    second = Pprof.decode(described_class.flush)
    expect([first, second].map { |each| seconds_in(each, "#digest").positive? }).to eq([true, false])
  end

  it "takes one profile at a time" do
    described_class.start
    expect(described_class).to be_running
    expect { described_class.start }.to raise_error(MemprofilerPprof::Error, /stop it first/)
  end

  it "stops after a block that raises" do
    expect { described_class.profile { raise "expected" } }.to raise_error("expected")
    expect(described_class).not_to be_running
  end

  it "names what is wrong with an option" do
    expect do
      described_class.start(frequency: 0)
    end.to raise_error(ArgumentError, /frequency must be .*1\.\.10000, got 0/)
    expect { described_class.flush(out: 1) }.to raise_error(TypeError, /out must be nil, a String or a Pathname, got 1/)
    expect { described_class.start(only: :fiber) }.to raise_error(ArgumentError, /only must be :thread, got :fiber/)
  end

  it "refuses what a flush of the heap takes, and would change nothing" do
    { gc: true, min_age: 1, sample_type_names: :go, default_sample_type: :retained_size }.each do |name, value|
      expect { described_class.flush(name => value) }
        .to raise_error(ArgumentError, /keyword must be one of yield_gvl, .*, max_duration, got :#{name}\z/)
    end
  end

  it "can be flushed only after a start" do
    outcome = run_ruby("MemprofilerPprof::CPU.flush")
    expect(outcome.stderr).to include("NotStartedError")
  end

  it "leaves nothing behind in a process that does not use it, or has stopped it" do
    outcome = run_ruby(<<~'RUBY')
      state = -> { [File.read("/proc/self/timers").scan("notify: signal/tid").size, Dir.children("/proc/self/task").size] }
      before = state.call
      MemprofilerPprof::CPU.start
      during = state.call
      MemprofilerPprof::CPU.stop
      p during == [before[0] + 1, before[1]], state.call == before
    RUBY
    expect(outcome.stdout.split.uniq).to eq(["true"]), outcome.to_s
  end

  # As minitest/autorun runs tests.
  it "samples what an at_exit block runs that was there before the start" do
    outcome = run_ruby(<<~RUBY)
      def late
        1000.times { nil } while MemprofilerPprof::CPU.running? && MemprofilerPprof::CPU.stats[:samples] < 3
      end
      at_exit do
        late
        puts MemprofilerPprof::CPU.flush.profile.to_folded(type: :cpu)
      end
      MemprofilerPprof::CPU.start(frequency: 1000)
    RUBY
    expect(outcome.stdout).to include("Object#late"), outcome.to_s
  end

  it "starts in a process of many threads, in which its first tick comes before Ruby runs any job" do
    outcome = run_ruby(<<~RUBY)
      400.times { Thread.new { sleep } }
      Thread.pass
      MemprofilerPprof::CPU.start(frequency: 1000)
      puts "fine"
    RUBY
    expect(outcome.to_a).to match(["fine\n", "", be_success])
  end

  it "gives the timers of threads that have ended to new ones", :slow do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::CPU.start
      1100.times { Thread.new { Thread.current.kill } }
      # Ruby keeps native threads for a while.
      sleep 0.01 until Dir.children("/proc/self/task").size < 10
      before = MemprofilerPprof::CPU.stats[:refused_timers]
      Thread.new { nil }.join
      puts MemprofilerPprof::CPU.stats[:refused_timers] - before
    RUBY
    expect(outcome.stdout).to eq("0\n"), outcome.to_s
  end

  it "goes on in a forked child, with its own CPU time only" do
    outcome = run_ruby(<<~'RUBY')
      def spin(time, clock = Process::CLOCK_THREAD_CPUTIME_ID)
        deadline = Process.clock_gettime(clock) + time
        1000.times { nil } while Process.clock_gettime(clock) < deadline
      end
      # Until the time was noticed, and not only used.
      def toil
        spin(0.1)
        last = MemprofilerPprof::CPU.stats[:signals] + 3
        1000.times { nil } until MemprofilerPprof::CPU.stats[:signals] >= last
      end
      def parent = toil
      def child = toil
      MemprofilerPprof::CPU.start(frequency: 1000)
      parent
      read, write = IO.pipe
      pid = fork do
        child
        write << MemprofilerPprof::CPU.flush.profile.to_folded(type: :cpu)
        write.close
      end
      write.close
      text = read.read
      Process.wait(pid)
      own = MemprofilerPprof::CPU.flush.profile.to_folded(type: :cpu)
      p text.include?("Object#child"), !text.include?("Object#parent"), own.include?("Object#parent"), !own.include?("#child")
    RUBY
    expect(outcome.stdout.split).to eq(["true"] * 4), outcome.to_s
  end

  it "has nothing of a parent that had stopped" do
    outcome = run_ruby(<<~'RUBY')
      cpu = -> { MemprofilerPprof::CPU.flush.profile.total(:cpu).value }
      MemprofilerPprof::CPU.start
      1_000_000.times { nil }
      MemprofilerPprof::CPU.stop
      Process.wait(fork { puts cpu.call })
      puts cpu.call
    RUBY
    expect(outcome.stdout.lines.map(&:to_i)).to match([0, be_positive]), outcome.to_s
  end

  it "does not disturb programs that are started, nor exec" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::CPU.start(frequency: 10_000)
      fine = Array.new(50) { system("true") && `echo a` == "a\n" }.all?
      puts fine
      $stdout.flush
      exec("echo", "replaced")
    RUBY
    expect(outcome.stdout).to eq("true\nreplaced\n"), outcome.to_s
  end

  it "passes on signals that are not from its timers" do
    outcome = run_ruby(<<~RUBY)
      signal = 40
      seen = Queue.new
      trap(signal) { seen << true }
      MemprofilerPprof::CPU.start(signal: signal, frequency: 1000)
      Process.kill(signal, Process.pid)
      p seen.pop
      1000.times { nil } until MemprofilerPprof::CPU.stats[:samples].positive?
      p MemprofilerPprof::CPU.stats.values_at(:signal, :signal_taken), seen.empty?
    RUBY
    expect(outcome.stdout).to eq("true\n[40, false]\ntrue\n"), outcome.to_s
  end

  it "works beside a profiler that uses SIGPROF" do
    skip "fiddle cannot be loaded" unless UsableGems.include?("fiddle") || RUBY_VERSION < "4"
    outcome = run_ruby(<<~RUBY, gems: true)
      require "fiddle"
      count = 0
      trap("PROF") { count += 1 }
      parameters = [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP]
      setitimer = Fiddle::Function.new(Fiddle::Handle::DEFAULT["setitimer"], parameters, Fiddle::TYPE_INT)
      setitimer.call(2, [0, 10_000, 0, 10_000].pack("q4"), nil)
      profile = MemprofilerPprof::CPU.profile(frequency: 1000) do
        deadline = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.3
        1000.times { nil } while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < deadline
      end
      p count.positive?, profile.profile.focus(/block in <main>/).total(:cpu).value > 200_000_000
    RUBY
    expect(outcome.stdout).to eq("true\ntrue\n"), outcome.to_s
  end

  it "does not interrupt what waits" do
    reader, writer = IO.pipe
    described_class.start(frequency: 10_000)
    thread = Thread.new do
      spin 0.1
      writer << "a"
    end
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    waited = [reader.read(1), sleep(0.3).class, reader.wait_readable(0.1)]
    expect(waited).to eq(["a", Integer, nil])
    expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).to be >= 0.4
    thread.join
  end

  it "notices that its signal was taken over" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::CPU.start
      trap(MemprofilerPprof::CPU.stats[:signal]) { nil }
      p MemprofilerPprof::CPU.stats[:signal_taken]
      p MemprofilerPprof::CPU.flush.profile.comments.grep(/signal_taken/).size
    RUBY
    expect(outcome.stdout).to eq("true\n1\n"), outcome.to_s
  end

  it "does not take a signal back from a handler that may pass signals on to it" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::CPU.start(signal: 40)
      MemprofilerPprof::CPU.stop
      trap(40) { puts "kept" }
      begin
        MemprofilerPprof::CPU.start(signal: 40)
      rescue MemprofilerPprof::Error => e
        puts e.message
      end
      Process.kill(40, Process.pid)
      MemprofilerPprof::CPU.start
      puts MemprofilerPprof::CPU.running?
    RUBY
    expect(outcome.stdout.lines(chomp: true)).to match([/signal 40 .* has been replaced/, "kept", "true"]), outcome.to_s
  end

  it "says which signal cannot be handled" do
    expect { described_class.start(signal: 9) }
      .to raise_error(MemprofilerPprof::Error, /\Asignal 9 cannot be used: Invalid argument .*; without the option/)
  end

  it "works beside a collector" do
    collector = new_collector(sample_rate: 1).start
    result = profile { until_ticked(50) { Array.new(1000) { Object.new } } }
    collector.stop
    expect(fraction(result, "Array#initialize")).to be > 0.1
    expect(Pprof.decode(collector.flush).samples).not_to be_empty
  end

  it "can be started beside another Ractor once it was started without" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::CPU.profile { nil }
      Warning[:experimental] = false
      Ractor.new { Ractor.receive }
      p MemprofilerPprof::CPU.profile { nil }.class
    RUBY
    expect(outcome.stdout).to eq("MemprofilerPprof::ProfileData\n"), outcome.to_s
  end

  it "is refused in other Ractors" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::CPU.start
      Warning[:experimental] = false
      ractor = Ractor.new do
        MemprofilerPprof::CPU.stop
        [MemprofilerPprof::CPU.running?, *%i[start flush stats].map do |name|
          MemprofilerPprof::CPU.public_send(name)
        rescue MemprofilerPprof::RactorError => e
          e.message
        end.uniq]
      end
      p ractor.respond_to?(:value) ? ractor.value : ractor.take
      p MemprofilerPprof::CPU.running?
    RUBY
    expect(outcome.stdout).to eq(%([false, "CPU time is sampled from the main Ractor"]\ntrue\n)), outcome.to_s
  end

  it "sees other Ractors" do
    skip "Ruby 3.3 and later" if RUBY_VERSION < "3.3"
    outcome = run_ruby(<<~RUBY, options: ["-W0"])
      def toil
        deadline = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.5
        1000.times { nil } while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < deadline
      end
      profile = MemprofilerPprof::CPU.profile(frequency: 1000) do
        3.times.map { Ractor.new { toil } }.each { |one| one.respond_to?(:value) ? one.value : one.take }
      end
      p profile.profile.focus(/toil/).total(:cpu).value > 600_000_000
      GC.start
    RUBY
    expect(outcome.stdout).to eq("true\n"), outcome.to_s
  end

  it "has a frame in each sample, also of fibers that begin or end" do
    result = profile(frequency: 1000) { 100_000.times { [1, 2].each.tap(&:next).next } }
    expect(result.samples.count { |sample| sample.names.empty? }).to eq(0)
  end

  it "follows fibers" do
    result = profile { Fiber.new { digest }.resume }
    expect(seconds_in(result, "#digest")).to be > 0.05, text(result)
  end
end
