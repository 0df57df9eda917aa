# frozen_string_literal: true

RSpec.describe "sampling CPU time", :faults do
  # What a program prints in which a method `toil` uses 0.1 s of CPU time.
  def lines(code)
    printed_by(<<~RUBY)
      CPU = MemprofilerPprof::CPU
      def toil
        deadline = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.1
        1000.times { nil } while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < deadline
      end

      # Beside other busy processes there may be no tick in 0.1 s.
      def toil_until_failure
        50.times { CPU.stats[:failure] ? break : toil }
      end

      def flush
        CPU.flush.profile.focus(/toil/).total(:cpu).value.between?(50_000_000, 300_000_000)
      rescue MemprofilerPprof::Error => e
        e.message
      end

      def flush_without_memory
        faults.inject("line", :memory)
        CPU.flush
      rescue NoMemoryError => e
        puts e.class
      end
      #{code}
    RUBY
  end

  it "ends after a panic in its job, and the program goes on" do
    expect(lines(<<~RUBY)).to match(["false", "job", /panic in its job/, /panic in its job/, "false"])
      CPU.start(frequency: 1000)
      faults.inject("cpu: job", :panic)
      toil_until_failure
      puts CPU.running?, CPU.stats[:failure], flush, flush
      GC.start
      toil
      puts CPU.running?
    RUBY
  end

  it "looks into no thread in its signals' handler after a panic" do
    expect(lines(<<~RUBY)).to eq(%w[true])
      CPU.start(frequency: 1000)
      faults.inject("cpu: job", :panic)
      toil_until_failure
      before = CPU.stats[:signals]
      toil
      puts CPU.stats[:signals] == before
    RUBY
  end

  ["cpu: name", "cpu: encode"].each do |place|
    it "ends after a panic at '#{place}'" do
      expect(lines(<<~RUBY)).to match([/panic in its flush/, "false"])
        CPU.start(frequency: 1000)
        toil
        faults.inject("#{place}", :panic)
        puts flush
        GC.start
        puts CPU.running?
      RUBY
    end
  end

  it "loses nothing if Ruby raises in a flush" do
    expect(lines(<<~RUBY)).to eq(%w[NoMemoryError true])
      CPU.start(frequency: 1000)
      toil
      flush_without_memory
      puts flush
    RUBY
  end

  it "loses nothing if it is stopped during a flush in which Ruby raises" do
    expect(lines(<<~RUBY)).to eq(%w[NoMemoryError true])
      CPU.start(frequency: 1000)
      toil
      faults.inject("cpu: name") { Thread.new { CPU.stop }.join }
      flush_without_memory
      puts flush
    RUBY
  end

  it "begins anew in a child that is forked in the middle of a flush" do
    expect(lines(<<~RUBY)).to contain_exactly("child true", "parent true")
      CPU.start(frequency: 1000)
      toil
      forking = lambda do
        pid = fork do
          toil
          puts "child \#{flush}"
          $stdout.flush
          exit!(0)
        end
        Process.wait(pid)
      end
      faults.inject("cpu: name") { Thread.new(&forking).join }
      puts "parent \#{flush}"
    RUBY
  end

  it "does not start without timers, and says why" do
    expect(lines(<<~RUBY)).to match([/\Ano timer on CPU time can be had: .*temporarily/, "false", "true"])
      faults.inject("timer_create", :deny)
      begin
        CPU.start
      rescue MemprofilerPprof::Error => e
        puts e.message
      end
      puts CPU.running?
      faults.clear
      CPU.start(frequency: 1000)
      toil
      puts flush
    RUBY
  end

  it "says in a forked child that it ends there for lack of a timer" do
    expect(lines(<<~RUBY)).to match([/CPU time is not sampled in this child: /, "false", "true", "true"])
      CPU.start(frequency: 1000)
      $stderr = $stdout
      $stdout.sync = true
      faults.inject("timer_create", :deny)
      Process.wait(fork { puts CPU.running?, !CPU.flush.pprof_data.empty? })
      puts CPU.running?
    RUBY
  end

  it "counts the threads that get no timer, and has their time in one line" do
    expect(lines(<<~'RUBY')).to eq(%w[1 true true])
      CPU.start(frequency: 1000)
      faults.inject("timer_create", :deny)
      Thread.new { toil }.join
      puts CPU.stats[:refused_timers]
      profile = CPU.flush.profile
      puts profile.comments.any?(/\Arefused_timers=1/)
      puts profile.focus(/\A\((other|native threads)\)/).total(:cpu).value > 50_000_000
    RUBY
  end

  it "uses rb_profile_frames where the walker cannot be used" do
    expect(lines(<<~RUBY)).to eq(%w[true true])
      faults.inject("walker", :deny)
      CPU.start(frequency: 1000)
      toil
      puts CPU.stats[:walker_failure].include?("differ"), flush
    RUBY
  end
end
