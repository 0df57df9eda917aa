# frozen_string_literal: true

require "tmpdir"

RSpec.describe "MemprofilerPprof::RakeTask" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  def rake(*arguments, task:, env: {})
    File.write("Rakefile", <<~RUBY)
      require "ruby_memprofiler_pprof/rake_task"
      Thing = Class.new
      task(:work, [:count]) { |_, arguments| $kept = Array.new(Integer(arguments[:count] || 10)) { Thing.new } }
      task(:slow) { sleep 0.01 until Dir['*.pprof'].size > 1 }
      task(:fail) { $kept = Thing.new; raise "no such luck" }
      MemprofilerPprof::RakeTask.new(:measure) { |t| #{task} }
    RUBY
    run_command(RbConfig.ruby, *load_path_options, "-S", "rake", *arguments, env: env)
  end

  def things
    Dir["*.pprof"].sum do |path|
      MemprofilerPprof::Profile.load(path).tag(class: "Thing").total(:allocations).value
    end
  end

  let(:settings) { "t.sample_rate = 1; t.pattern = '%{index}.pprof'" }

  it "profiles tasks, and says where" do
    outcome = rake("measure", task: "t.tasks = :work; #{settings}")
    expect(things).to eq(10)
    expect(outcome.stdout).to end_with("wrote #{Dir.pwd}/0.pprof\n"), outcome.to_s
  end

  it "passes its arguments on" do
    rake("measure[25]", task: "t.tasks = :work; #{settings}")
    expect(things).to eq(25)
  end

  it "samples always, unless another sampling is set" do
    comments = ["", "; t.sampling = :auto"].map do |more|
      rake("measure", task: "t.tasks = :work; #{settings}#{more}")
      MemprofilerPprof::Profile.load("0.pprof").comments.grep(/^sampling=/).first.tap { File.unlink("0.pprof") }
    end
    expect(comments).to match(["sampling=always: sampling is :always", /\Asampling=always: (?!sampling)/])
  end

  it "writes a profile at each interval" do
    rake("measure", task: "t.tasks = %w[work slow]; t.interval = 0.1; #{settings}")
    expect(Dir["*.pprof"].size).to be >= 3
    expect(things).to eq(10)
  end

  it "writes a profile if a task fails" do
    outcome = rake("measure", task: "t.tasks = :fail; #{settings}")
    expect(things).to eq(1)
    expect(outcome.stderr).to include("no such luck")
    expect(outcome).not_to be_success
  end

  it "gives the environment precedence" do
    rake("measure", task: "t.tasks = :work; #{settings}", env: { "RUBY_MEMPROFILER_PPROF_PATTERN" => "env.pprof" })
    expect(Dir["*.pprof"]).to eq(["env.pprof"])
  end

  it "runs the tasks without a profile if the profiler is switched off" do
    outcome = rake("measure", task: "t.tasks = :fail; #{settings}", env: { "RUBY_MEMPROFILER_PPROF_ENABLED" => "0" })
    expect([outcome.stderr, Dir["*.pprof"]]).to match([/no such luck/, []])
  end

  it "describes itself" do
    expect(rake("-T", task: "t.tasks = :work").stdout).to match(/rake measure +# Profile the memory of work/)
  end

  it "requires tasks" do
    expect(rake("-T", task: "").stderr).to include("tasks must name what measure is to run, got none")
  end

  it "refuses settings that do not exist" do
    # From 3.4 on Ruby's suggestion is not in the message, and rake prints nothing else.
    expect(rake("-T", task: "t.samplerate = 1").stderr).to match(/undefined method .samplerate='/)
  end

  it "refuses settings that it could not apply" do
    %w[enabled start_paused dump_on toggle_on socket].each do |setting|
      expect(rake("-T", task: "t.#{setting} = nil").stderr).to match(/undefined method .#{setting}='/)
    end
  end
end
