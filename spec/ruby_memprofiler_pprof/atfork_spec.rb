# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Atfork, :liveness, :moving, :threads do
  # Runs code with `say`, which writes words from all processes to one pipe, and returns them.
  def words_of(code, **options)
    outcome = run_ruby(<<~RUBY, **options)
      reader, WRITER = IO.pipe
      def say(word) = WRITER.syswrite("\#{word} ")
      #{code}
      WRITER.close
      print reader.read
    RUBY
    expect(outcome).to be_success, outcome.to_s
    outcome.stdout.split
  end

  # Code that registers a block for each stage.
  let(:handlers) do
    "MemprofilerPprof::Atfork::STAGES.each { |stage| MemprofilerPprof::Atfork.at_fork(stage) { say(stage) } }"
  end

  {
    "fork with a block" => "Process.wait(fork { say(:block) })",
    "fork without a block" => "pid = fork; pid ? Process.wait(pid) : (say(:block); exit!)",
    "Process.fork" => "Process.wait(Process.fork { say(:block) })",
    "Kernel.fork" => "Process.wait(Kernel.fork { say(:block) })",
    'IO.popen("-")' => 'IO.popen("-") { |io| io ? io.read : say(:block) }'
  }.each do |name, code|
    it "calls the blocks of each stage, each once, for #{name}" do
      expect(words_of("#{handlers}; #{code}")).to contain_exactly("prepare", "parent", "child", "block")
    end
  end

  it "calls :prepare first and :child before the forked block" do
    words = words_of("#{handlers}; Process.wait(fork { say(:block) })") - ["parent"]
    expect(words).to eq(%w[prepare child block])
  end

  it "calls :prepare and :child for Process.daemon" do
    words = words_of(<<~RUBY)
      #{handlers}
      unless (pid = fork)
        Process.daemon(true)
        say(:daemon)
        exit!
      end
      Process.wait(pid)
    RUBY
    # First those of the fork, whose parent is the program itself.
    expect((words - ["parent"]).join(" ")).to eq("prepare child prepare child daemon")
  end

  it "is not called when another program is run" do
    expect(words_of("#{handlers}; system('true'); Process.wait(spawn('true')); `true`")).to be_empty
  end

  it "calls the blocks of a stage in the order of their registration" do
    register = "3.times { |n| MemprofilerPprof::Atfork.at_fork(:child) { say(n) } }"
    expect(words_of("#{register}; Process.wait(fork {})")).to eq(%w[0 1 2])
  end

  it "calls the blocks in a child's child" do
    expect(words_of("MemprofilerPprof::Atfork.at_fork(:child) { say(:child) }
                     Process.wait(fork { Process.wait(fork {}) })")).to eq(%w[child child])
  end

  it "registers for :prepare if no stage is given" do
    expect(described_class.at_fork { nil }.tap(&:remove!).stage).to eq(:prepare)
  end

  it "continues after a block that raises, and reports it" do
    outcome = run_ruby(<<~RUBY)
      MemprofilerPprof::Atfork.at_fork(:child) { raise "oh no" }
      MemprofilerPprof::Atfork.at_fork(:child) { puts "second" }
      Process.wait(fork { puts "forked" })
    RUBY
    expect(outcome).to have_attributes(stdout: "second\nforked\n",
                                       stderr: /an at_fork block \(child\) failed: .*oh no/)
  end

  it "calls :parent when forking fails" do
    called = []
    handler = described_class.at_fork(:parent) { called << :parent }
    expect { described_class.around { raise Errno::EAGAIN } }.to raise_error(Errno::EAGAIN)
    expect(called).to eq([:parent])
  ensure
    handler.remove!
  end

  it "forgets a block that was removed" do
    handler = described_class.at_fork(:parent) { nil }
    handler.remove!
    expect(described_class.at_fork_handlers).not_to include(handler)
  end

  it "calls blocks once, however often it is installed" do
    expect(words_of("#{handlers}; 2.times { MemprofilerPprof::Atfork.install }; Process.wait(fork {})"))
      .to contain_exactly("prepare", "parent", "child")
  end

  it "refuses a stage that does not exist" do
    expect { described_class.at_fork(:after) { nil } }
      .to raise_error(ArgumentError, "stage must be one of :prepare, :parent, :child, got :after")
  end

  it "requires a block" do
    expect { described_class.at_fork(:child) }.to raise_error(ArgumentError, "at_fork needs a block")
  end

  it "adds nothing to Kernel and Object" do
    expect(Object.new.methods + Object.private_instance_methods).not_to include(:at_fork, :at_fork_handlers)
  end

  it "notifies running collectors in a child" do
    outcome = run_ruby(<<~RUBY)
      collector = new_collector.start
      collector.define_singleton_method(:after_fork) { puts "after_fork"; super() }
      Process.wait(fork { puts "forked" })
    RUBY
    expect(outcome.stdout).to eq("after_fork\nforked\n")
  end
end
