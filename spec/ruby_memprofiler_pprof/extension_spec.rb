# frozen_string_literal: true

require "tmpdir"

RSpec.describe "ruby_memprofiler_pprof/extension" do
  let(:message) { "ruby_memprofiler_pprof is compiled for Ruby 2.6, and this is Ruby #{RUBY_VERSION}: install the gem" }

  # The gem, in a directory where a note says that its library is for another Ruby.
  around do |example|
    Dir.mktmpdir do |directory|
      Dir.mkdir("#{directory}/ruby_memprofiler_pprof")
      Dir.chdir(SubprocessHelpers::LIB) do
        files = Dir["*.rb", "ruby_memprofiler_pprof/*"] - ["ruby_memprofiler_pprof/built_for"]
        files.each { |file| File.symlink(File.expand_path(file), "#{directory}/#{file}") }
      end
      File.write("#{directory}/ruby_memprofiler_pprof/built_for", "2.6\n")
      @paths = [directory]
      example.run
    end
  end

  def ruby(*arguments, env: {})
    run_command(*SubprocessHelpers::RUBY, *arguments, env: { "RUBYLIB" => @paths.join(":"), **env })
  end

  # The command puts its own lib/ first.
  def memprofiler(command)
    code = "require 'ruby_memprofiler_pprof/cli'; exit MemprofilerPprof::CLI.new.run(ARGV)"
    ruby("-e", code, *command)
  end

  it "loads no library for another Ruby" do
    loading = 'begin; require "ruby_memprofiler_pprof"; rescue LoadError => e; puts e.message; end'
    expect(ruby("-e", loading).stdout).to start_with(message)
  end

  it "loads the one for this Ruby if that comes later, as where Rubies share a directory" do
    @paths << SubprocessHelpers::LIB
    expect(ruby("-e", 'require "ruby_memprofiler_pprof"; puts $".grep(/pprof\.(so|bundle)/)').stdout)
      .to start_with(SubprocessHelpers::LIB)
  end

  it "lets a program under `memprofiler run` go on without it" do
    outcome = ruby("-e", "puts :ran", env: { "RUBYOPT" => "-rruby_memprofiler_pprof/autostart" })
    expect(outcome).to have_attributes(success?: true, stdout: "ran\n", stderr: /ERROR .* not profiling: #{message}/)
  end

  it "makes a finding of doctor" do
    expect(memprofiler(%w[doctor]))
      .to have_attributes(status: have_attributes(exitstatus: 1), stdout: /^failing +extension +#{message}/, stderr: "")
  end

  it "is what other commands say, without a backtrace" do
    expect(memprofiler(%w[report a.pprof]).stderr).to match(/\Amemprofiler: #{message}.*\n\z/)
  end
end
