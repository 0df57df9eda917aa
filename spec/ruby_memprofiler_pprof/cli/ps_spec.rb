# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require "ruby_memprofiler_pprof/by_pid"

RSpec.describe "memprofiler ps", if: RUBY_PLATFORM.include?("linux") do
  # Runs Ruby code until the block returns. Its output has begun, so all of Ruby is loaded.
  def with_ruby(code, *options)
    IO.popen([RbConfig.ruby, *load_path_options, *options, "-e", "#{code}; $stdout.sync = true; puts; gets"],
             "r+") do |io|
      io.gets
      yield io.pid
    end
  end

  # The words of the line about a process.
  def line_of(pid)
    outcome = run_command(*SubprocessHelpers::MEMPROFILER, "ps")
    outcome.stdout.lines.map(&:split).find { |words| words.first == pid.to_s }
  end

  it "lists a Ruby with its version and command" do
    with_ruby("") do |pid|
      expect(line_of(pid)).to start_with(pid.to_s, RUBY_VERSION, "no", RbConfig.ruby)
    end
  end

  it "says whether the profiler is loaded" do
    with_ruby("", "-rruby_memprofiler_pprof") { |pid| expect(line_of(pid)[2]).to eq("yes") }
  end

  it "counts what it may not look into", if: Process.uid.zero? do
    Dir.mktmpdir do |directory|
      File.chmod(0o755, directory)
      FileUtils.cp(MemprofilerPprof::ByPid.path, directory)
      outcome = run_command("setpriv", "--reuid", "65534", "--clear-groups", "#{directory}/memprofiler-attach", "ps")
      expect(outcome.stdout).to match(/^Processes that could not be looked into: [1-9].* use sudo/)
    end
  end

  it "does not advise root to use sudo", if: Process.uid.zero? do
    outcome = run_command("setpriv", "--bounding-set", "-sys_ptrace", MemprofilerPprof::ByPid.path, "ps")
    expect(outcome.stdout).to match(/^Processes that could not be looked into: \d+\. To see all, add the capability/)
  end

  it "says that it cannot print" do
    expect(run_command("sh", "-c", '"$0" ps > /dev/full', MemprofilerPprof::ByPid.path))
      .to have_attributes(stderr: a_string_starting_with("stdout: No space left on device"),
                          status: have_attributes(exitstatus: 2))
  end

  it "lists no other programs" do
    pid = spawn("sleep", "60")
    expect(line_of(pid)).to be_nil
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end
