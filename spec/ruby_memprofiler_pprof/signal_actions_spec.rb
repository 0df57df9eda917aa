# frozen_string_literal: true

RSpec.describe MemprofilerPprof::SignalActions, :threads do
  # `finish` waits for the threads of all actions. A process that sends itself a signal has handled it before
  # Process.kill returns. The thread that watches the handlers does not end.
  finish = <<~RUBY
    finish = -> { (Thread.list - [Thread.main]).reject { |thread| thread.name&.end_with?("signals") }.each(&:join) }
  RUBY

  # Runs code with `actions`, which adds the names of what it does to the Queue `done`.
  define_method(:stdout_of) do |code|
    outcome = run_ruby(<<~RUBY)
      #{finish}
      done = Queue.new
      actions = MemprofilerPprof::SignalActions.new { |action| done << action }
      #{code}
    RUBY
    expect(outcome).to have_attributes(success?: true, stderr: ""), outcome.to_s
    outcome.stdout
  end

  it "run at their signal, in a thread" do
    expect(stdout_of(<<~RUBY)).to eq("dumpfalse")
      threads = Queue.new
      actions = MemprofilerPprof::SignalActions.new { |action| threads << Thread.current; done << action }
      actions.install(:dump, "USR2")
      Process.kill(:USR2, Process.pid)
      print done.pop, threads.pop == Thread.main
    RUBY
  end

  it "can take locks that the interrupted program holds" do
    expect(stdout_of(<<~RUBY)).to eq("done")
      lock = Mutex.new
      begun = Queue.new
      actions = MemprofilerPprof::SignalActions.new { |_| begun << 1; lock.synchronize { done << "done" } }
      actions.install(:dump, "USR2")
      lock.synchronize { Process.kill(:USR2, Process.pid); begun.pop }
      print done.pop
    RUBY
  end

  it "call the handler that was there before" do
    expect(stdout_of(<<~RUBY)).to eq("dump#{Signal.list["USR2"]}")
      numbers = Queue.new
      trap("USR2") { |number| numbers << number }
      actions.install(:dump, "USR2")
      Process.kill(:USR2, Process.pid)
      print done.pop, numbers.pop
    RUBY
  end

  it "yield to a handler that the program installs later" do
    expect(stdout_of(<<~RUBY)).to eq("later0")
      actions.install(:dump, "USR2")
      later = Queue.new
      trap("USR2") { later << "later" }
      Process.kill(:USR2, Process.pid)
      print later.pop
      finish.call
      print done.size
    RUBY
  end

  it "are called by a later handler that calls its predecessor" do
    expect(stdout_of(<<~RUBY)).to eq("dump")
      actions.install(:dump, "USR2")
      before = trap("USR2") { before.call }
      Process.kill(:USR2, Process.pid)
      print done.pop
    RUBY
  end

  it "can share a signal" do
    expect(stdout_of(<<~RUBY)).to eq("[:dump, :toggle]")
      actions.install(:dump, "USR2")
      actions.install(:toggle, "USR2")
      Process.kill(:USR2, Process.pid)
      print Array.new(2) { done.pop }.sort
    RUBY
  end

  it "can change their signal" do
    expect(stdout_of(<<~RUBY)).to eq("0 1")
      actions.install(:dump, "WINCH")
      actions.install(:dump, "URG")
      Process.kill(:WINCH, Process.pid)
      finish.call
      print done.size, " "
      Process.kill(:URG, Process.pid)
      finish.call
      print done.size
    RUBY
  end

  it "restore a signal as they found it" do
    expect(stdout_of(<<~RUBY)).to eq("SYSTEM_DEFAULT true")
      trap("USR2", own = proc { nil })
      %w[URG USR2].each do |signal|
        actions.install(:dump, signal)
        actions.install(:toggle, signal)
        actions.install(:dump, nil)
        actions.install(:toggle, nil)
      end
      print trap("URG", "IGNORE"), " ", trap("USR2", "IGNORE").equal?(own)
    RUBY
  end

  it "leave a signal to a handler that the program has installed since" do
    expect(stdout_of(<<~RUBY)).to eq("true")
      actions.install(:dump, "USR2")
      trap("USR2", later = proc { nil })
      actions.install(:dump, nil)
      print trap("USR2", "IGNORE").equal?(later)
    RUBY
  end

  # PIPE has one that is Ruby's, but no other signal's.
  it "leave a signal alone that has a handler in C, which could not be restored, and say so" do
    outcome = run_ruby(<<~RUBY)
      actions = MemprofilerPprof::SignalActions.new { |_| nil }
      handler = -> { MemprofilerPprof.signal_handler(Signal.list.fetch("PIPE")) }
      before = handler.call
      2.times { actions.install(:dump, "PIPE") }
      during = handler.call
      actions.install(:dump, nil)
      print [during, handler.call] == [before, before]
    RUBY
    expect(outcome).to have_attributes(stdout: "true", stderr: /\AWARN .*PIPE has a handler in C.* not dump.*\n\z/)
  end

  it "run once, however often they were installed" do
    expect(stdout_of(<<~RUBY)).to eq("1")
      again = -> { [nil, "USR2"].each { |signal| actions.install(:dump, signal) } }
      2.times { again.call }
      # Keeps calling a handler that is no longer one.
      before = trap("USR2") { before.call }
      2.times { again.call }
      Process.kill(:USR2, Process.pid)
      finish.call
      print done.size
    RUBY
  end

  describe "whose handler is replaced" do
    # Runs code in which `minutes` pass.
    def stderr_of(code, **keywords)
      outcome = run_ruby(<<~RUBY, options: ["-r#{File.expand_path("../support/manual_clock", __dir__)}"], **keywords)
        clock = ManualClock.install
        actions = MemprofilerPprof::SignalActions.new { |_| nil }
        actions.install(:dump, "USR2")
        minutes = ->(count) { count.times { clock.advance(60) } }
        #{code}
      RUBY
      expect(outcome).to be_success
      outcome.stderr
    end

    it "say so, once, and leave the handler" do
      expect(stderr_of(<<~RUBY)).to match(/\AWARN .*that of USR2: unless .* signal does not dump\. Use .*`\n\z/)
        trap("USR2", later = proc { nil })
        minutes.(3)
        abort unless trap("USR2", "IGNORE").equal?(later)
      RUBY
    end

    it "say nothing as long as it is not" do
      expect(stderr_of("trap('USR1') { nil }; minutes.(3)")).to eq("")
    end

    it "leave a handler in C, which Ruby does not know" do
      # No longer a default gem in Ruby 4.0.
      skip "fiddle is not installed" if Gem::Specification.find_all_by_name("fiddle").empty?

      expect(stderr_of(<<~RUBY, gems: true)).to include("replaced that of USR2")
        require "fiddle"
        number = Signal.list.fetch("USR2")
        libc = Fiddle.dlopen(nil)
        signal = Fiddle::Function.new(libc["signal"], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOIDP)
        signal.call(number, libc["abs"])
        minutes.(1)
        actions.install(:dump, nil)
        abort unless MemprofilerPprof.signal_handler(number) == libc["abs"]
      RUBY
    end

    it "notice it in a forked child" do
      expect(stderr_of(<<~RUBY)).to include("replaced that of USR2")
        MemprofilerPprof::RunningFlushers.install
        Process.wait(fork { trap("USR2", "IGNORE"); minutes.(1); exit! })
      RUBY
    end

    it "do not make a fork fail if the child gets no thread" do
      expect(stderr_of(<<~RUBY)).to match(/\AERROR .*not be noticed in the forked process: can't create Thread\n\z/)
        MemprofilerPprof::RunningFlushers.install
        MemprofilerPprof::BackgroundThread.define_singleton_method(:start) { |*| raise ThreadError, "can't create Thread" }
        abort "failed" unless Process.wait2(fork { exit!(true) }).last.success?
      RUBY
    end

    it "have no thread when no signal is used" do
      expect(stderr_of("actions.install(:dump, nil); abort unless Thread.list.size == 1")).to eq("")
    end
  end

  it "are not lost by a fork" do
    expect(stdout_of(<<~RUBY)).to eq("dump")
      actions.install(:dump, "USR2")
      Process.wait(fork { Process.kill(:USR2, Process.pid); print done.pop })
    RUBY
  end

  it "run one after another, and skip most of a flood" do
    expect(stdout_of(<<~RUBY)).to eq("1 8")
      busy = most = count = 0
      go = Queue.new
      actions = MemprofilerPprof::SignalActions.new do |_|
        busy += 1
        most = [most, busy].max
        go.pop
        count += 1
        busy -= 1
      end
      actions.install(:dump, "USR2")
      100.times { Process.kill(:USR2, Process.pid) }
      Thread.pass until (Thread.list - [Thread.main]).all?(&:stop?)
      100.times { go << 1 }
      finish.call
      print most, " ", count
    RUBY
  end

  it "log what went wrong, and leave the program alone" do
    outcome = run_ruby(<<~RUBY)
      #{finish}
      actions = MemprofilerPprof::SignalActions.new { |_| raise "no luck" }
      actions.install(:dump, "USR2")
      Process.kill(:USR2, Process.pid)
      finish.call
      print "on"
    RUBY
    expect(outcome).to have_attributes(stdout: "on", stderr: /\AERROR .*cannot dump: no luck \(RuntimeError\)\n\z/)
  end
end
