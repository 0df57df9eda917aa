# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid/attachment"

RSpec.describe "MemprofilerPprof::ByPid::Attachment", if: Attaching.possible? do
  include Attaching

  let(:error) { MemprofilerPprof::ByPid::Error }

  def attach(pid)
    MemprofilerPprof::ByPid::Attachment.new(pid).start({})
  end

  # As a process sees it whose files are below `directory`.
  def library_in(directory)
    library = $LOADED_FEATURES.find { |path| path.end_with?("/ruby_memprofiler_pprof.so") }
    File.join(directory, library).tap { |path| FileUtils.mkdir_p(File.dirname(path)) }
  end

  it "opens no pipe in place of the library" do
    Dir.mktmpdir do |directory|
      File.mkfifo(library_in(directory))
      subject = MemprofilerPprof::ByPid::Subject.new(Process.pid)
      allow(subject).to receive(:file) { |path| "#{directory}#{path}" }
      allow(MemprofilerPprof::ByPid::Subject).to receive(:new).and_return(subject)
      expect { attach(Process.pid) }.to raise_error(error, /cannot see/)
    end
  end

  it "says that the process has no free descriptor for what it is to load" do
    with_program("sleep") do |program|
      memprofiler!("attach", program.pid)
      program.ask("Process.setrlimit(:NOFILE, 64); $files = []; " \
                  "begin; loop { $files << File.open(IO::NULL) }; rescue Errno::EMFILE; end")
      expect { MemprofilerPprof::ByPid::Attachment.new(program.pid).stop }
        .to raise_error(error, /process #{program.pid}: it has no free file descriptor/)
    end
  end

  it "brings nothing to a process that would have no descriptor left" do
    with_program("sleep") do |program|
      program.ask("Process.setrlimit(:NOFILE, #{program.descriptors.size + 1}); 1")
      expect { attach(program.pid) }.to raise_error(error, /has \d file descriptors \(ulimit -n\) left/)
      expect(program.ask("defined?(MemprofilerPprof)")).to be_nil
    end
  end

  it "brings nothing to a process that could have no memory for it" do
    with_program("sleep") do |program|
      size = File.read("/proc/#{program.pid}/status")[/^VmSize:\s*(\d+)/, 1].to_i * 1024
      program.ask("Process.setrlimit(:AS, #{size + 100_000_000}); 1")
      expect { attach(program.pid) }.to raise_error(error, /MB of addresses \(ulimit -v\) left/)
      expect(program.ask("defined?(MemprofilerPprof)")).to be_nil
    end
  end

  it "says where the process may not be allowed to read or write" do
    with_program("def File.symlink(*) = raise(Errno::EACCES); sleep") do |program|
      expect { attach(program.pid) }.to raise_error(error, %r{it wrote no answer: .* read and write in /tmp})
    end
  end
end
