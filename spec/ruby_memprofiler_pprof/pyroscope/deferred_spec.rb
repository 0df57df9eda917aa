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

  it "leaves no thread when another one takes its place" do
    FakeHttpServer.run(200) do |server|
      result = run_ruby(<<~RUBY, args: [server.url])
        start = lambda do |name|
          MemprofilerPprof.start(pyroscope_url: ARGV.first, pyroscope_app_name: name, sample_rate: 1)
          # Nothing is sent of a process that allocates nothing.
          Object.new
        end
        start.call("one")
        MemprofilerPprof.stop
        former = Thread.list.select { |thread| thread.name == "ruby_memprofiler_pprof uploader" }
        start.call("two")
        former.each(&:join)
        print former.size
      RUBY
      expect(result.stdout).to eq("1"), result.to_s
      expect(server.requests.map { |request| request.query["name"] }).to eq(%w[one{} two{}])
    end
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
