# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid/attachment"

RSpec.describe "MemprofilerPprof::ByPid::Attachment", if: Attaching.possible? do
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
end
