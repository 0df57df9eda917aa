# frozen_string_literal: true

RSpec.describe "docs/sending-profiles.md" do
  it "sends profiles to Pyroscope" do
    FakeHttpServer.run(200) do |server|
      code, = Manual.ruby("docs/sending-profiles.md", "Pyroscope")
      outcome = run_ruby(code.sub("http://127.0.0.1:4040", server.url), gems: true)
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
      expect(server.requests.map { |request| request.query["name"] }).to eq(["shop{env=production}"])
    end
  end

  it "sends profiles to anything else" do
    FakeHttpServer.run(200) do |server|
      code = Manual.ruby("docs/sending-profiles.md", "Anything else").last
      outcome = run_ruby(code.sub("http://127.0.0.1:8080", server.url), gems: true)
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
      expect(server.requests.map(&:path)).to eq(["/profiles"])
    end
  end

  it "has the keywords of Pyroscope.new" do
    parameters = run_ruby(<<~RUBY).stdout.split
      require "ruby_memprofiler_pprof/pyroscope"
      puts MemprofilerPprof::Pyroscope.instance_method(:initialize).parameters.map(&:last)
    RUBY
    expect(Manual.names("docs/sending-profiles.md", "Pyroscope").map(&:to_s)).to match_array(parameters)
  end
end
