# frozen_string_literal: true

# A copy of the process, and what comes back from it. See ext/ruby_memprofiler_pprof/src/vm/child/.
RSpec.describe "a copy of the process", :faults do
  before { skip "only Linux can copy a process" unless RUBY_PLATFORM.include?("linux") }

  it "returns a long answer whole" do
    lines = printed_by(<<~RUBY)
      answer, pause, elapsed, attempts, = faults.child(:bytes, (10 << 20).to_s)
      puts answer == Array.new(251, &:chr).join * ((10 << 20) / 251) + answer[0, (10 << 20) % 251]
      puts pause.positive?, pause < elapsed, attempts
    RUBY
    expect(lines).to eq(%w[true true true 1])
  end

  it "returns an empty answer" do
    expect(printed_by('p faults.child(:bytes, "0").first')).to eq(['""'])
  end

  # malloc is called in none of them: the system's allocator would wait forever for what another thread has locked.
  it "answers each time beside native threads that are busy in malloc" do
    lines = printed_by(<<~RUBY, env: { "MALLOC_ARENA_MAX" => "1" })
      faults.busy_in_malloc(4)
      answers = Array.new(100) { faults.child(:memory, "1") }
      p answers.map { |answer, _, _, attempts| [answer, attempts] }.tally
    RUBY
    sum = (1 << 17) * ((1 << 17) - 1) / 2
    expect(lines).to eq([{ [sum.to_s, 1] => 100 }.inspect])
  end

  it "keeps the contents of blocks that come, grow, shrink and go, also of those from before the copy" do
    expect(printed_by("puts Array.new(3) { |n| faults.child(:allocations, (n + 7).to_s).first }")).to eq(["whole"] * 3)
  end

  it "counts the memory that it takes" do
    bytes = printed_by('puts faults.child(:memory, "16").last').first.to_i
    expect(bytes).to be_between(16 << 20, 17 << 20)
  end

  it "has little memory to share where addresses are limited, but some" do
    lines = printed_by(<<~RUBY)
      size = File.read("/proc/self/status")[/VmSize:\\s+(\\d+)/, 1].to_i << 10
      Process.setrlimit(:AS, size + (300 << 20))
      puts faults.child(:memory, "8").first
    RUBY
    expect(lines).to eq([((1 << 20) * ((1 << 20) - 1) / 2).to_s])
  end

  describe "when it begins" do
    let(:state) { printed_by("puts faults.child(:state).first") }

    it "closes the program's files, and has /dev/null as its standard ones" do
      expect(state).to start_with("open: 0 1 2 3", "0: /dev/null", "1: /dev/null", "2: /dev/null")
    end

    it "closes them without close_range, too" do
      lines = printed_by(<<~RUBY)
        faults.inject("close_range", :deny)
        kept = Array.new(200) { File.open(File::NULL) }
        puts faults.child(:state).first.lines.first
      RUBY
      expect(lines).to eq(["open: 0 1 2 3"])
    end

    it "says who it is, steps back, and dies with its parent" do
      nice = [Process.getpriority(Process::PRIO_PROCESS, 0) + 10, 19].min
      expect(state).to include("Name:\tmemprofiler-why", "nice: #{nice}", "oom_score_adj: 1000", "pdeathsig: 9")
    end

    it "leaves no core dump, and ends without being told" do
      expect(state).to include("dumpable: 0", /Max core file size +0 +0/, /Max cpu time +240 +240/)
    end

    it "receives no signal but those that end it, and has no handlers" do
      blocked = state.grep(/SigBlk/).first[/\h+$/].hex
      caught = state.grep(/SigCgt/).first[/\h+$/].hex
      open = %w[INT TERM HUP QUIT CHLD VTALRM PROF USR1 TSTP SEGV ALRM XCPU]
             .reject { |name| blocked[Signal.list[name] - 1] == 1 }
      # The C library keeps two realtime signals for itself.
      expect([open, caught & 0x7fff_ffff]).to eq([%w[ALRM XCPU], 0])
    end
  end

  {
    "under GC.stress" => "GC.stress = true; answers << faults.child(:memory, '0').first; GC.stress = false",
    "in a fiber" => "Fiber.new { answers << faults.child(:memory, '0').first }.resume",
    "in a thread, beside others that allocate" => <<~RUBY
      busy = Array.new(4) { Thread.new { loop { "text" * 10 } } }
      Thread.new { 3.times { answers << faults.child(:memory, '0').first } }.join
      busy.each(&:kill)
    RUBY
  }.each do |where, code|
    it "answers #{where}" do
      expect(printed_by("answers = []\n#{code}\np answers.uniq")).to eq(['["0"]'])
    end
  end
end
