# frozen_string_literal: true

# Copies that die or hang, and those that are not made: the program goes on, and is told why there is no answer.
RSpec.describe "a copy of the process", :faults do
  before { skip "only Linux can copy a process" unless RUBY_PLATFORM.include?("linux") }

  def lines(code, **keywords)
    printed_by(Faulty::BESIDE_CHILD + code, **keywords)
  end

  # The message of the error, after which there are neither children nor more files, and the next copy answers.
  def message(code)
    message, *rest = lines(<<~RUBY)
      before = files
      puts failure { #{code} }
      faults.clear
      puts children.inspect, files == before, faults.child(:bytes, "3").first.size
    RUBY
    expect(rest).to eq(["[]", "true", "3"])
    message
  end

  describe "that is lost" do
    it "is made a second time" do
      printed = lines(<<~RUBY)
        faults.inject("child: start", :kill)
        faults.inject("child: retry") { faults.clear }
        p faults.child(:memory, "0").values_at(0, 3)
      RUBY
      expect(printed).to eq(['["0", 2]'])
    end

    it "is preceded by the end of a compaction, each time" do
      skip "cannot compact" unless GC.respond_to?(:auto_compact=)
      printed = lines(<<~RUBY)
        collector = new_collector.start
        # Up to Ruby 3.1 a collection that has begun to mark would move what it has not pinned.
        GC.start
        GC.auto_compact = true
        states = []
        begin_compaction = lambda do
          faults.inject("child: copy") { states << GC.latest_gc_info(:state) }
          GC.start(immediate_sweep: false)
        end
        faults.inject("child: start", :kill)
        faults.inject("child: retry") { faults.clear || begin_compaction.call }
        begin_compaction.call
        p collector.retainers.attempts, states
      RUBY
      expect(printed).to eq(["2", "[:none, :none]"])
    end

    {
      "because it was killed" => ['faults.inject("child: start", :kill); faults.child(:bytes, "3")',
                                  "was killed (signal 9), perhaps for lack of memory"],
      "because it crashed" => ["faults.child(:crash)", "crashed (signal 11)"],
      "because it aborted" => ["faults.child(:abort)", "crashed (signal 6)"],
      "because it panicked" => ['faults.inject("child: start", :panic); faults.child(:bytes, "3")',
                                %r{panicked at ext/.*/faults/injection\.rs:\d+; please report this bug}],
      "because it ended in the middle of its answer" => ["faults.child(:half)", "answered only in part"],
      "because it hung" => ['faults.inject("child: start", :hang); faults.child(:bytes, "3", wall: 4)', "hung"],
      "before it could seal its answer" => ['faults.inject("child: seal", :kill); faults.child(:bytes, "100000")',
                                            "was killed (signal 9), perhaps for lack of memory"],
      "because the system has no memory" => [<<~RUBY, "got no more memory from the system"]
        faults.inject("headroom", :deny)
        limit = Process.getrlimit(:AS)
        size = File.read("/proc/self/status")[/VmSize:\\s+(\\d+)/, 1].to_i << 10
        Process.setrlimit(:AS, size + (20 << 20), limit.last)
        begin
          faults.child(:memory, "30")
        ensure
          Process.setrlimit(:AS, *limit)
        end
      RUBY
    }.each do |cause, (code, reason)|
      it "twice #{cause} is reported" do
        expect(message(code)).to match(/\Athe copy of this process #{Regexp.union(reason)} \(at the second attempt\)\z/)
      end
    end
  end

  describe "that would be lost again" do
    {
      "because it needs more memory than its limit" => [
        'faults.child(:memory, "9", memory: 9 << 20)',
        "needed more than 9 MB: use in_process: true, which has no such limit"
      ],
      "because the work fails" => ['faults.child(:error, "no luck")', "failed: no luck"],
      "because the time is up" => ["faults.child(:busy, wall: 0.3)",
                                   "did not answer within 0.3 s: allow it more with timeout:"],
      "because the program's files cannot be closed" => [
        'faults.inject("/proc", :deny); faults.child(:bytes, "3")',
        "could not close the program's files: neither close_range nor /proc is there"
      ]
    }.each do |cause, (code, reason)|
      it "is made only once #{cause}" do
        expect(message(code)).to eq("the copy of this process #{reason}")
      end
    end
  end

  describe "that the system refuses" do
    it "is reported with the call that failed" do
      expect(message('faults.inject("clone", :deny); faults.child(:bytes, "3")'))
        .to eq("the copy of this process could not be made: clone: Operation not permitted (os error 1); perhaps a " \
               "security policy of the container forbids it (seccomp)")
    end

    it "is reported when no file can be opened" do
      expect(message(<<~RUBY)).to match(/could not be made: pipe: Too many open files.*\(ulimit -n\)/)
        limit = Process.getrlimit(:NOFILE)
        spare = File.open(File::NULL)
        Process.setrlimit(:NOFILE, spare.fileno + 1, limit.last)
        begin
          kept = Array.new(100) { File.open(File::NULL) }
        rescue Errno::EMFILE
          faults.child(:bytes, "3")
        ensure
          Process.setrlimit(:NOFILE, *limit)
          [spare, *kept].each(&:close)
        end
      RUBY
    end
  end

  describe "that would endanger the program" do
    it "is refused while there is another" do
      printed = lines(<<~RUBY)
        beside_child { puts failure { faults.child(:bytes, "1") } }
        puts faults.child(:bytes, "1").first.size
      RUBY
      expect(printed).to match([/is being read already: try again/, "1"])
    end

    it "is refused again while that goes on" do
      printed = lines(<<~RUBY)
        before = files
        beside_child { 2.times { puts failure { faults.child(:bytes, "1") } } }
        puts files == before
      RUBY
      expect(printed).to match([/is being read already/, /is being read already/, "true"])
    end

    it "is refused when memory is short" do
      expect(message('faults.child(:bytes, "3", memory: 1 << 50)'))
        .to match(/\Aa copy of this process may need \d+ MB, \d+ MB .*, and .+ leaves \d+ MB: allow it more/)
    end

    it "is refused when addresses are short" do
      expect(message(<<~RUBY)).to match(/limit on the address space \(ulimit -v\) leaves \d+ MB/)
        limit = Process.getrlimit(:AS)
        size = File.read("/proc/self/status")[/VmSize:\\s+(\\d+)/, 1].to_i << 10
        Process.setrlimit(:AS, size + (100 << 20), limit.last)
        begin
          faults.child(:bytes, "3")
        ensure
          Process.setrlimit(:AS, *limit)
        end
      RUBY
    end

    it "is refused beside another Ractor, until that has ended" do
      printed = lines(<<~RUBY)
        $VERBOSE = nil
        ractor = Ractor.new { Ractor.respond_to?(:receive) && Ractor.receive }
        puts failure { faults.child(:bytes, "1") }
        ractor.send(nil)
        ractor.respond_to?(:value) ? ractor.value : ractor.take
        sleep 0.001 until Ractor.count == 1
        puts faults.child(:bytes, "1").first.size
      RUBY
      expect(printed).to match([/while there are other Ractors: try again when they have ended/, "1"])
    end
  end

  describe "in a program that forks" do
    it "is not the forked child's: that has no file of it, and can have a copy of its own" do
      printed = lines(<<~RUBY)
        collector = new_collector(sample_rate: 1.0).start
        before = files.size
        beside_child do
          child = fork do
            puts files.size - before, faults.child(:bytes, "3").first.size
            $stdout.flush
            exit!(0)
          end
          Process.wait(child)
        end
      RUBY
      expect(printed).to eq(%w[0 3])
    end

    it "is made again in a child that was forked by a signal handler of the thread that waits" do
      printed = lines(<<~RUBY)
        parent = Process.pid
        forked = nil
        trap(:USR1) { forked = fork || 0 }
        Dir.mktmpdir do |folder|
          Thread.new do
            sleep 0.001 until File.exist?("\#{folder}/started")
            Process.kill(:USR1, parent)
            sleep 0.001 until forked
            File.write("\#{folder}/go", "")
          end
          answer, _, _, attempts, = faults.child(:wait, folder)
          puts "\#{Process.pid == parent} \#{answer.size} \#{attempts} \#{children.size}"
          $stdout.flush
          Process.pid == parent ? Process.wait(forked) : exit!(0)
        end
      RUBY
      expect(printed).to contain_exactly("true 1048576 1 1", "false 1048576 2 0")
    end
  end
end
