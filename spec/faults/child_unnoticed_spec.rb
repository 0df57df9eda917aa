# frozen_string_literal: true

# What a program could notice of its copy, and must not.
RSpec.describe "a program of which there is a copy", :faults do
  before { skip "only Linux can copy a process" unless RUBY_PLATFORM.include?("linux") }

  def lines(code, **keywords)
    printed_by(Faulty::BESIDE_CHILD + code, **keywords)
  end

  it "goes on" do
    expect(lines("puts beside_child { puts 'goes on' }.first.size")).to eq(["goes on", "1048576"])
  end

  it "has no child to wait for, and gets no SIGCHLD, neither then nor afterwards" do
    printed = lines(<<~RUBY)
      signals = 0
      trap(:CHLD) { signals += 1 }
      waiting = lambda do
        [-> { Process.wait(-1) }, -> { Process.wait2(-1, Process::WNOHANG) }, -> { Process.waitall }].map do |wait|
          wait.call
        rescue Errno::ECHILD
          "none"
        end
      end
      beside_child { p waiting.call }
      p waiting.call
      GC.start
      p signals
    RUBY
    expect(printed).to eq(['["none", "none", []]', '["none", "none", []]', "0"])
  end

  it "has not forked, as far as handlers of forks know" do
    printed = lines(<<~RUBY)
      forks = []
      Process.singleton_class.prepend(Module.new { define_method(:_fork) { forks << :_fork && super() } })
      MemprofilerPprof::Atfork::STAGES.each { |stage| MemprofilerPprof::Atfork.at_fork(stage) { forks << stage } }
      at_exit { forks << :exit }
      puts faults.child(:bytes, "1").first.size
      p forks
    RUBY
    expect(printed).to eq(%w[1 []])
  end

  it "can close a port and bind it again" do
    printed = lines(<<~RUBY)
      require "socket"
      server = TCPServer.new("127.0.0.1", 0)
      port = server.addr[1]
      beside_child do
        server.close
        puts TCPServer.new("127.0.0.1", port).addr[1] == port
      end
    RUBY
    expect(printed).to eq(["true"])
  end

  it "closes a connection for its peer" do
    printed = lines(<<~RUBY)
      require "socket"
      ours, theirs = UNIXSocket.pair
      beside_child do
        ours.close
        p theirs.read
      end
    RUBY
    expect(printed).to eq(['""'])
  end

  it "has the same files and children after 100 copies, also after those that failed" do
    printed = lines(<<~RUBY)
      before = files
      100.times { faults.child(:bytes, "100") }
      10.times { failure { faults.child(:crash) } }
      puts files == before, children.inspect
    RUBY
    expect(printed).to eq(["true", "[]"])
  end

  it "can ignore a signal to its process group: the copy does, too" do
    printed = lines(<<~RUBY)
      caught = []
      %w[INT TERM HUP QUIT USR1 TSTP].each { |name| trap(name) { caught << name } }
      outcome = beside_child do
        %w[INT TERM HUP QUIT USR1 TSTP].each { |name| Process.kill(name, -Process.getpgrp) }
        sleep 0.001 until caught.size == 6
      end
      p outcome[0].size, outcome[3]
    RUBY
    expect(printed).to eq(%w[1048576 1])
  end

  it "can handle signals in the thread that waits" do
    printed = lines(<<~RUBY)
      require "tmpdir"
      caught = 0
      trap(:USR1) { caught += 1 }
      Dir.mktmpdir do |folder|
        Thread.new do
          sleep 0.001 until File.exist?("\#{folder}/started")
          100.times { |n| Process.kill(:USR1, Process.pid) && (sleep 0.001 until caught > n) }
          File.write("\#{folder}/go", "")
        end
        outcome = faults.child(:wait, folder)
        p outcome[0].size, outcome[3], caught
      end
    RUBY
    expect(printed).to eq(%w[1048576 1 100])
  end

  describe "when the thread that waits is interrupted" do
    # Whether the copy has vanished, and the next one answers.
    def aftermath
      "puts children.inspect, files == before, faults.child(:bytes, '3').first.size"
    end

    it "gets the exception of Timeout, and keeps nothing" do
      printed = lines(<<~RUBY)
        require "timeout"
        Timeout.timeout(60) { nil }
        before = files
        Dir.mktmpdir do |folder|
          Timeout.timeout(0.2) { faults.child(:wait, folder) }
        rescue Timeout::Error => e
          puts e.class
        end
        #{aftermath}
      RUBY
      expect(printed).to eq(["Timeout::Error", "[]", "true", "3"])
    end

    it "ends the copy by Thread#kill and Thread#raise" do
      printed = lines(<<~RUBY)
        before = files
        %i[kill raise].each do |method|
          beside_child { |_, asker| asker.public_send(method) && asker.join(60) }
        rescue RuntimeError => e
          puts e.class
        end
        #{aftermath}
      RUBY
      expect(printed).to eq(["RuntimeError", "[]", "true", "3"])
    end
  end

  # The copy is nobody's child then.
  { "is killed" => "Process.kill(:KILL, Process.pid) && sleep", "ends" => "exit!(9)",
    "ends while a thread waits for the copy" => "exit(9)" }.each do |ends, code|
    it "takes the copy with it when it #{ends}" do
      outcome = run_faulty(<<~RUBY)
        #{Faulty::BESIDE_CHILD}
        beside_child(wall: 3600) { |pid| $stdout.syswrite(pid.to_s) && #{code} }
      RUBY
      copy = "/proc/#{outcome.stdout}/stat"
      # Whoever inherits it may leave it as a zombie.
      wait_until(what: "its end") { !File.exist?(copy) || File.read(copy).match?(/\) [ZX] /) }
      expect([outcome.stdout.to_i, outcome.status.termsig || outcome.status.exitstatus]).to match([be_positive, 9])
    end
  end
end
