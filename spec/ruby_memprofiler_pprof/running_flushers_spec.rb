# frozen_string_literal: true

# Flushers over the life of a process: each of these runs a program of its own.
RSpec.describe MemprofilerPprof::RunningFlushers, :liveness, :moving, :threads do
  # Runs code beside a flusher that writes "process-thread" for each flush, where process and thread are "main" or
  # "other", and returns these words. Each flush also goes to the Queue `said`.
  def flushes_in(code, interval: 1000, success: true)
    outcome = run_ruby(<<~RUBY)
      $stdout.sync = true
      said = Queue.new
      FIRST = Process.pid
      collector = new_collector.start
      say = lambda do |_|
        flags = [Process.pid == FIRST, Thread.current == Thread.main]
        $stdout.syswrite("\#{flags.map { |flag| flag ? "main" : "other" }.join("-")} ")
        said << 1
      end
      flusher = MemprofilerPprof::BlockFlusher.new(collector, interval: #{interval}, on_flush: say).start!
      #{code}
    RUBY
    expect(outcome).to have_attributes(success?: success, stderr: ""), outcome.to_s
    outcome.stdout.split
  end

  it "flush a last time at exit" do
    expect(flushes_in("")).to eq(["main-main"])
  end

  it "flush after the program's own at_exit blocks" do
    expect(flushes_in('at_exit { print "exit " }')).to eq(%w[exit main-main])
  end

  it "flush a last time if they are started in an at_exit block that is older than the gem" do
    outcome = run_command(*SubprocessHelpers::RUBY, *load_path_options, "-e", <<~RUBY)
      at_exit do
        print "suite "
        say = ->(profile) { puts profile.profile.comments.grep(/\\Aat_exit=/).size }
        MemprofilerPprof::BlockFlusher.new(MemprofilerPprof::Collector.new.start, on_flush: say).start!
      end
      require "ruby_memprofiler_pprof"
    RUBY
    expect(outcome.stdout).to eq("suite 1\n")
  end

  it "end although each last flush starts another flusher, also in a child" do
    outcome = run_ruby(<<~RUBY)
      flushes = 0
      again = lambda do |_|
        $stdout.syswrite("flush ")
        exit!(false) if (flushes += 1) > 3
        start = -> { MemprofilerPprof::BlockFlusher.new(new_collector.start, on_flush: again).start! }
        Process.wait(fork(&start))
        start.call
      end
      MemprofilerPprof::BlockFlusher.new(new_collector.start, on_flush: again).start!
    RUBY
    expect(outcome).to have_attributes(success?: true, stdout: "flush ")
  end

  it "flush a last time after an exit with a status" do
    expect(flushes_in("exit 3", success: false)).to eq(["main-main"])
  end

  it "say so in the profile of the exit, and in none before" do
    outcome = run_ruby(<<~RUBY)
      say = ->(profile) { puts profile.profile.comments.grep(/\\Aat_exit=/).size }
      flusher = MemprofilerPprof::BlockFlusher.new(new_collector.start, on_flush: say).start!
      at_exit { flusher.stop!; flusher.start! }
    RUBY
    expect(outcome.stdout.split).to eq(%w[0 1])
  end

  it "say so in no profile of a child that is forked meanwhile" do
    outcome = run_ruby(<<~RUBY)
      collector = new_collector.start
      forking = ->(_) { Process.wait(fork { puts collector.flush.profile.comments.grep(/\\Aat_exit=/).size }) }
      MemprofilerPprof::BlockFlusher.new(collector, on_flush: forking).start!
    RUBY
    expect(outcome.stdout).to eq("0\n")
  end

  it "do not change the exit status" do
    outcome = run_ruby("MemprofilerPprof::BlockFlusher.new(new_collector.start) { nil }.start!; exit 3")
    expect(outcome.status.exitstatus).to eq(3)
  end

  it "flush a last time when the process is asked to terminate" do
    outcome = run_ruby(<<~RUBY)
      collector = new_collector.start
      MemprofilerPprof::BlockFlusher.new(collector, on_flush: ->(_) { puts "last" }).start!
      Process.kill(:TERM, Process.pid)
      sleep
    RUBY
    expect(outcome).to have_attributes(stdout: "last\n", status: have_attributes(termsig: Signal.list["TERM"]))
  end

  it "do not flush after exit!" do
    expect(flushes_in("exit!(true)")).to be_empty
  end

  it "do not flush at exit once they are stopped" do
    expect(flushes_in("flusher.stop!")).to eq(["main-main"])
  end

  it "flush a last time when their thread was killed" do
    expect(flushes_in("(Thread.list - [Thread.main]).each(&:kill).each(&:join)")).to eq(["main-main"])
  end

  it "each flush a last time" do
    expect(flushes_in("MemprofilerPprof::BlockFlusher.new(collector, on_flush: say).start!")).to eq(["main-main"] * 2)
  end

  it "wait at exit for a flush under way" do
    code = <<~RUBY
      flusher.stop!
      begun = Queue.new
      exiting = Queue.new
      at_exit { exiting.close }
      slow = lambda do |_|
        print "begin "
        begun << 1
        exiting.pop
        # Until the process waits for it.
        Thread.pass until Thread.current == Thread.main || Thread.main.stop?
        print "end "
      end
      MemprofilerPprof::BlockFlusher.new(collector, interval: 1000, on_flush: slow).start!.flush_soon
      begun.pop
    RUBY
    expect(flushes_in(code).drop(1)).to eq(%w[begin end begin end])
  end

  it "do not keep the process alive if a flush hangs" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::BlockFlusher.const_set(:EXIT_TIMEOUT, 0.1)
      begun = Queue.new
      hanging = ->(_) { begun << 1; sleep }
      collector = new_collector.start
      MemprofilerPprof::BlockFlusher.new(collector, interval: 0.01, on_flush: hanging).start!
      begun.pop
    RUBY
    expect(outcome).to have_attributes(success?: true, stderr: /no last flush: one did not end within 0.1 s/)
  end

  it "continue in a forked child, with a thread" do
    words = flushes_in(<<~RUBY, interval: 0.01)
      flusher.pause
      Process.wait(fork { said.clear; flusher.unpause; said.pop; exit! })
    RUBY
    expect(words).to include("other-other")
  end

  it "continue in a forked child, and end, although a sink cannot" do
    outcome = run_ruby(<<~RUBY)
      sink = Object.new
      def sink.after_fork = raise("no child")
      def sink.finish = raise("no end")
      MemprofilerPprof::RunningFlushers.add_sink(sink)
      last = Object.new
      def last.after_fork = puts("child")
      def last.finish = puts("end")
      MemprofilerPprof::RunningFlushers.add_sink(last)
      Process.wait(fork { $stdout.flush; exit!(true) })
    RUBY
    expect(outcome.stdout.lines(chomp: true)).to eq(%w[child end])
    expect(outcome.stderr.lines).to match([/Object: RuntimeError: no child/, /Object: RuntimeError: no end/])
  end

  it "flush a last time at a child's exit" do
    expect(flushes_in("Process.wait(fork {})")).to eq(%w[other-main main-main])
  end

  it "continue in a child's child" do
    expect(flushes_in("Process.wait(fork { Process.wait(fork {}) })")).to eq(%w[other-main other-main main-main])
  end

  it "stay paused in a child" do
    words = flushes_in(<<~RUBY)
      flusher.stop!
      require "#{File.expand_path("../support/manual_clock", __dir__)}"
      clock = ManualClock.install
      flusher = MemprofilerPprof::BlockFlusher.new(collector, interval: 10, on_flush: say).start!.pause
      Process.wait(fork { clock.advance(20); print "unpause "; flusher.unpause; clock.settle; exit! })
      exit!(true)
    RUBY
    expect(words).to eq(%w[main-main unpause other-other])
  end

  it "stay stopped in a child" do
    expect(flushes_in('flusher.stop!; Process.wait(fork { print "threads: ", Thread.list.size })'))
      .to eq(%w[main-main threads: 1])
  end

  it "continue in the parent of a child" do
    words = flushes_in(<<~RUBY, interval: 0.01)
      Process.wait(fork { exit! })
      print "on "
      said.clear
      # The first may have been written before.
      2.times { said.pop }
      exit!(true)
    RUBY
    expect(words.drop_while { |word| word != "on" }).to include("main-other")
  end

  it "continue in a daemon" do
    words = flushes_in(<<~RUBY)
      reader, writer = IO.pipe
      if fork
        writer.close
        print reader.read
        exit!(true)
      end
      Process.daemon(true)
      $stdout.reopen(writer)
    RUBY
    expect(words).to eq(["other-main"])
  end

  it "continue in the child if another thread holds their lock at the fork" do
    code = <<~RUBY
      lock = flusher.instance_variable_get(:@thread).instance_variable_get(:@mutex)
      held = Queue.new
      Thread.new { lock.synchronize { held << 1; sleep } }
      held.pop
      Process.wait(fork { flusher.stop! })
      exit!(true)
    RUBY
    expect(flushes_in(code)).to eq(["other-main"])
  end

  it "allow a fork inside on_flush" do
    words = flushes_in(<<~RUBY)
      flusher.stop!
      forked = Queue.new
      forking = ->(profile) { say.call(profile); Process.wait(fork {}); forked << 1 }
      MemprofilerPprof::BlockFlusher.new(collector, interval: 1000, on_flush: forking).start!.flush_soon
      forked.pop
      exit!(true)
    RUBY
    expect(words).to include("other-other").or include("other-main")
  end
end
