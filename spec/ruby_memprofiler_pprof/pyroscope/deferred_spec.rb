# frozen_string_literal: true

RSpec.describe "MemprofilerPprof::Pyroscope::Deferred" do
  # The result of code in a process that is profiled from its start.
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

  it "passes all settings on" do
    code = <<~RUBY
      require "ruby_memprofiler_pprof/pyroscope/deferred"
      print MemprofilerPprof::Pyroscope::Deferred.options(MemprofilerPprof.config).compact.sort
    RUBY
    expect(outcome(code, PYROSCOPE_BASIC_AUTH: "me:a:b", PYROSCOPE_TENANT_ID: "seven", TAGS: "a=b").stdout)
      .to eq([[:app_name, "shop"], [:basic_auth, ["me", "a:b"]], [:tags, { "a" => "b" }], [:tenant_id, "seven"],
              [:url, "http://127.0.0.1:9"]].to_s)
  end
end
