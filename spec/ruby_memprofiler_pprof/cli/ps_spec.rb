# frozen_string_literal: true

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

  it "lists no other programs" do
    pid = spawn("sleep", "60")
    expect(line_of(pid)).to be_nil
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end
