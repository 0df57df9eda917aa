# frozen_string_literal: true

RSpec.describe "MemprofilerPprof::Pyroscope::Deferred" do
  # What becomes of code in a process that is profiled from its beginning.
  def outcome(code, **variables)
    env = { PYROSCOPE_URL: "http://127.0.0.1:9", PYROSCOPE_APP_NAME: "shop", **variables }
    run_ruby(code, env: env.transform_keys { |name| "RUBY_MEMPROFILER_PPROF_#{name}" })
  end

  it "loads no gems before the first profile" do
    code = <<~RUBY
      require "ruby_memprofiler_pprof/autostart"
      $stdout.sync = true
      print MemprofilerPprof.flusher.class, $LOADED_FEATURES.grep(%r{/net/http\\.rb|/uri\\.rb|/socket\\.rb}).size
      exit!
    RUBY
    expect(outcome(code).stdout).to eq("MemprofilerPprof::BlockFlusher0")
  end
end
