# frozen_string_literal: true

require "tmpdir"

# When profiles cannot be written, the program goes on, and the log says what was lost and why.
RSpec.describe MemprofilerPprof::FileFlusher do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # The log of a program with a flusher, while its disk is as `before` makes it, and then as `after` does.
  # @return [Array<String>] lines
  def log_of(before: "", after: "", pattern: "profiles/%{index}.pprof")
    outcome = run_ruby(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      log = []
      logger = Object.new
      %i[info warn error].each { |name| logger.define_singleton_method(name) { |line| log << "\#{name} \#{line}" } }
      flusher = MemprofilerPprof::FileFlusher.new(collector, pattern: #{pattern.inspect}, interval: 0.05, logger: logger)
      kept = []
      #{before}
      flusher.start!
      wait = ->(count) { (kept << Object.new) && sleep(0.01) until log.size >= count }
      wait.call(2)
      #{after}
      wait.call(log.size + 2)
      flusher.stop!
      puts log, "running \#{collector.running?}", "went on \#{kept.size > 1}"
    RUBY
    raise outcome.to_s unless outcome.success?

    outcome.stdout.lines(chomp: true)
  end

  let(:went_on) { ["running true", "went on true"] }

  it "says what is lost while files may not be so large, leaves no part of a file, and writes again afterwards" do
    lines = log_of(before: "Process.setrlimit(:FSIZE, 100, Process::RLIM_INFINITY)",
                   after: "Process.setrlimit(:FSIZE, Process::RLIM_INFINITY)")
    expect([lines.first, lines[-3], lines.last(2), Dir.glob("profiles/.*tmp")])
      .to match([/\Aerror .*cannot write .*File too large.*since the last flush are lost \(\d+ samples\)/,
                 /\Ainfo .*wrote /, went_on, []])
  end

  it "says so if the directory cannot be created" do
    File.write("profiles", "")
    expect(log_of).to include(/\Aerror .*cannot write .*File exists/, *went_on)
  end

  it "says so on a read-only file system" do
    # The kernel's own file systems accept new files from nobody, not even root.
    skip "there is no /proc" unless File.directory?("/proc/self")
    expect(log_of(pattern: "/proc/self/profiles/%{index}.pprof"))
      .to include(%r{\Aerror .*cannot write /proc/self/profiles/0.pprof}, *went_on)
  end

  it "lets the program run on while the disk is slow" do
    # A write that ends only when the program has gone on.
    lines = log_of(before: <<~RUBY)
      File.prepend(Module.new { define_method(:write) { |*parts| (sleep 0.01 until kept.size > 10) || super(*parts) } })
    RUBY
    expect(lines).to include(/\Ainfo .*wrote /, *went_on)
  end

  it "gives files distinct names while the clock goes backwards" do
    lines = log_of(pattern: "%{unixtime}.pprof", before: <<~RUBY)
      seconds = 100
      Time.define_singleton_method(:now) { at(seconds = [seconds - 1, 98].max) }
    RUBY
    written = lines.grep(/wrote/).map { |line| line[/\S+\z/] }
    expect([written.uniq, written.size, lines.last(2)]).to match([written, be > 2, went_on])
  end

  it "raises the system's error if a profile is written to a full device" do
    skip "there is no /dev/full" unless File.exist?("/dev/full")
    expect { new_collector(sample_rate: 1.0).profile { Object.new }.write("/dev/full") }.to raise_error(Errno::ENOSPC)
  end
end
