# frozen_string_literal: true

RSpec.describe "docs/http.md" do
  # Runs a config.ru, and prints its responses to requests by path, with and without the token.
  def answers(section, *paths, token: "x")
    skip "Rack is not installed" unless HttpServer.available?

    config, = Manual.ruby("docs/http.md", section)
    outcome = run_ruby(<<~'RUBY', env: { "PPROF_TOKEN" => token }, args: [config, *paths], gems: true)
      require "rack"
      config, *paths = ARGV
      app = Rack::Builder.new { instance_eval(config); run ->(_) { [200, {}, ["shop"]] } }
      request = Rack::MockRequest.new(app)
      paths.each do |path|
        [{}, { "HTTP_X_TOKEN" => ENV["PPROF_TOKEN"].to_s }].each do |env|
          response = request.get(path, env)
          puts "#{response.status} #{response.body[/.*/]}"
        end
      end
    RUBY
    expect(outcome).to be_success, outcome.to_s
    outcome.stdout.lines.map(&:chomp)
  end

  it "mounts the endpoint" do
    expect(answers("Rack endpoint", "/debug/pprof/heap?debug=1"))
      .to match([/\A403 Not permitted/, /\A200 heap profile: /])
  end

  it "uses the middleware" do
    expect(answers("Rack middleware", "/", "/a?memprofiler"))
      .to match(["200 shop", "200 shop", "200 shop", %r{\A200 GET /a: status 200, 4 bytes}])
  end

  it "has the keywords" do
    parameters = run_ruby(<<~RUBY).stdout.split
      require "ruby_memprofiler_pprof/rack"
      [MemprofilerPprof::Rack::Endpoint, MemprofilerPprof::Rack::Middleware].each do |type|
        puts type.instance_method(:initialize).parameters.filter_map { |kind, name| name if kind == :key }
      end
      puts MemprofilerPprof::Rack::Middleware::COLLECTOR_OPTIONS.keys
    RUBY
    names = ["Rack endpoint", "Rack middleware"].flat_map { |heading| Manual.defaults("docs/http.md", heading).keys }
    expect(names.map(&:to_s)).to match_array(parameters)
  end

  it "lets nobody in without a token" do
    ["", nil].each do |token|
      expect(answers("Rack endpoint", "/debug/pprof/cmdline", token: token)).to all(start_with("403"))
      expect(answers("Rack middleware", "/?memprofiler", token: token)).to eq(["200 shop"] * 2)
    end
  end
end
