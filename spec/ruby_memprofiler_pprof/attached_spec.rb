# frozen_string_literal: true

require "tmpdir"

RSpec.describe "MemprofilerPprof::Attached" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # The flusher of a process that `memprofiler run` has left paused.
  def flusher(variables)
    outcome = run_ruby(<<~RUBY)
      require "ruby_memprofiler_pprof/attached"
      MemprofilerPprof.configure { |config| config.start_paused = true; config.toggle_on = "URG" }
      MemprofilerPprof.profiler.boot
      MemprofilerPprof::Attached.start({ "RUBY_MEMPROFILER_PPROF_SOCKET" => "mem-a.sock" }.merge(#{variables.inspect}))
      print MemprofilerPprof.flusher.class
    RUBY
    outcome.success? ? outcome.stdout : raise(outcome.to_s)
  end

  it "writes no files by default" do
    expect(flusher({})).to eq("NilClass")
  end

  it "writes files if a setting says so" do
    expect(flusher({ "RUBY_MEMPROFILER_PPROF_PATTERN" => "a" })).to eq("MemprofilerPprof::FileFlusher")
  end
end
