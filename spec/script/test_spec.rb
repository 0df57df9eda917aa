# frozen_string_literal: true

require "fileutils"

# What script/test reports about the specs it runs, here about small ones in a folder of their own.
RSpec.describe "script/test", :repository do
  let(:root) { File.expand_path("../..", __dir__) }
  let(:folder) { FileUtils.mkdir_p("#{root}/tmp/test_spec").first.then { |parent| Dir.mktmpdir(nil, parent) } }

  after { FileUtils.rm_rf(folder) }

  # @param files [Hash{String => String}] the examples in each
  def run_specs(files, *options)
    paths = files.map do |name, code|
      "#{folder}/#{name}_spec.rb".tap { |path| File.write(path, "RSpec.describe('it') do\n#{code}\nend\n") }
    end
    run_command(RbConfig.ruby, "#{root}/script/test.d/run", *options, *paths, chdir: root)
  end

  def closing(outcome)
    outcome.stdout.lines(chomp: true).last
  end

  it "counts the examples of all processes" do
    outcome = run_specs({ a: "it('a') {}; it('b') { skip }", b: "it('c', :own_process) {}" })
    expect([closing(outcome), outcome.status.exitstatus]).to eq(["3 examples, 0 failures, 1 pending", 0])
  end

  it "fails if an example fails, shows why, and says how to run just that" do
    outcome = run_specs({ a: "it('a') { expect(1).to eq(2) }; it('b') {}" })
    expect([closing(outcome), outcome.status.exitstatus]).to eq(["2 examples, 1 failures, 0 pending", 1])
    expect(outcome.stdout).to match(/expected: 2\n +got: 1$/).and match(%r{^Failed:\n  rspec '\S+/a_spec.rb\[1:1\]'$})
  end

  it "fails if a process crashes, and says where it was" do
    outcome = run_specs({ a: "it('a') {}; it('b') { Process.kill(:KILL, Process.pid) }" }, "--seed", "1")
    expect(closing(outcome)).to match(/\A[01] examples, 1 failures/)
    expect(outcome.stdout).to match(%r{of 2 examples ran, then it ended in \S+/a_spec.rb\[1:2\]: .*SIGKILL})
  end

  it "fails if a process ends early with success" do
    outcome = run_specs({ a: "it('a') { exit!(0) }" })
    expect([closing(outcome), outcome.status.exitstatus]).to eq(["0 examples, 1 failures, 0 pending", 1])
  end

  it "fails if a file cannot be loaded, and shows why" do
    outcome = run_specs({ a: "no_such_method" })
    expect(outcome.status.exitstatus).to eq(1)
    expect(outcome.stderr + outcome.stdout).to include("no_such_method")
  end

  describe "with an example that passes the second time" do
    let(:code) { "it('a', TAGS) { File.exist?('#{folder}/tried') || (File.write('#{folder}/tried', '') && fail) }" }

    it "retries it if its subject is time, and says so" do
      outcome = run_specs({ a: code.sub("TAGS", ":timing") })
      expect([closing(outcome), outcome.status.exitstatus]).to eq(["1 examples, 0 failures, 0 pending", 0])
      expect(outcome.stdout).to match(/^Tried a second time.*\n  passed: rspec .*a_spec\.rb\\\[1:1\\\]$/)
    end

    it "does not retry others" do
      expect(closing(run_specs({ a: code.sub("TAGS", ":other") }))).to eq("1 examples, 1 failures, 0 pending")
    end
  end

  it "fails if an example fails the second time, too" do
    outcome = run_specs({ a: "it('a', :timing) { fail }" })
    expect([closing(outcome), outcome.status.exitstatus]).to eq(["1 examples, 1 failures, 0 pending", 1])
  end

  it "leaves out slow examples unless requested" do
    files = { a: "it('a', :slow) {}; it('b') {}" }
    found = [[], ["--slow"]].map { |options| closing(run_specs(files, *options)).to_i }
    expect(found).to eq([1, 2])
  end

  it "runs in a lane what has opted in, with that lane's environment" do
    outcome = run_specs({ a: "it('a', :moving) { expect(ENV['SPEC_GC']).to eq('compact') }; it('b') { fail }" },
                        "--lane", "moving")
    expect(closing(outcome)).to eq("1 examples, 0 failures, 0 pending")
  end

  it "shows the progress of each lane" do
    outcome = run_specs({ a: "it('a', :moving, :jit) { sleep 1 }" }, "--lane", "moving,liveness,jit", "--progress", "0")
    expect(outcome.stdout).to match(%r{^0:0\d  moving 0/1  jit 0/1$}).and match(%r{moving 1/1  jit [01]/1$})
  end

  it "lists the known lanes" do
    outcome = run_specs({}, "--lane", "fast")
    expect([outcome.stderr, outcome.success?]).to eq(["script/test: there is no lane fast, see --help\n", false])
  end
end
