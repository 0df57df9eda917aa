# frozen_string_literal: true

RSpec.describe "docs/sending-profiles.md" do
  it "sends profiles to Pyroscope" do
    FakeHttpServer.run(200) do |server|
      code, = Manual.ruby("docs/sending-profiles.md", "Pyroscope")
      outcome = run_ruby(code.sub("http://127.0.0.1:4040", server.url))
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
      expect(server.requests.map { |request| request.query["name"] }).to eq(["shop{env=production}"])
    end
  end
end
