# frozen_string_literal: true

require "ruby_memprofiler_pprof/rack"

RSpec.describe MemprofilerPprof::Rack::Access do
  local = { "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "localhost:3000" }

  around do |example|
    none = { "RAILS_ENV" => nil, "RACK_ENV" => nil, "APP_ENV" => nil }
    before = ENV.to_h.slice(*none.keys)
    ENV.update(none)
    example.run
  ensure
    ENV.update(none.merge(before))
  end

  def permit?(env, authorize: nil, **environment)
    ENV.update(environment.transform_keys(&:to_s))
    described_class.new(authorize).permit?(env)
  end

  def refusal(env, **environment)
    ENV.update(environment.transform_keys(&:to_s))
    described_class.new(nil).refusal(env)
  end

  it "permits this machine in development" do
    expect(permit?(local, RAILS_ENV: "development")).to be(true)
    expect(permit?(local, RACK_ENV: "test")).to be(true)
    expect(permit?({ "REMOTE_ADDR" => "::1", "HTTP_HOST" => "[::1]:80" }, RACK_ENV: "development")).to be(true)
    expect(permit?(local.merge("HTTP_HOST" => "shop.localhost"), RACK_ENV: "development")).to be(true)
  end

  it "permits nobody in other environments" do
    expect(permit?(local)).to be(false)
    expect(permit?(local, RAILS_ENV: "production")).to be(false)
    expect(permit?(local, RAILS_ENV: "production", RACK_ENV: "development")).to be(false)
    expect(permit?(local, RAILS_ENV: "development", RACK_ENV: "staging")).to be(false)
  end

  # Puma sets RACK_ENV if nobody has, even where Sinatra has its own variable.
  it "respects Sinatra's environment" do
    expect(permit?(local, APP_ENV: "production", RACK_ENV: "development")).to be(false)
  end

  {
    "another machine" => { "REMOTE_ADDR" => "10.0.0.1" },
    "no address" => { "REMOTE_ADDR" => nil },
    "a proxy's client" => { "HTTP_X_FORWARDED_FOR" => "10.0.0.1" },
    "another proxy's client" => { "HTTP_FORWARDED" => "for=10.0.0.1" },
    "a page of another site" => { "HTTP_SEC_FETCH_SITE" => "cross-site" },
    "a page of another port" => { "HTTP_ORIGIN" => "http://localhost:4000" },
    "a page without an origin" => { "HTTP_ORIGIN" => "null" },
    "a name that is not this machine's" => { "HTTP_HOST" => "evil.example" },
    "a name that only begins like it" => { "HTTP_HOST" => "localhost.evil.example" },
    "a name in the second line" => { "HTTP_HOST" => "evil\nlocalhost" }
  }.each do |whom, header|
    it "does not permit #{whom}, even in development" do
      expect(permit?(local.merge(header), RACK_ENV: "development")).to be(false)
    end
  end

  %w[X-Forwarded-For X-Forwarded-Proto X-Forwarded-Server X-Real-IP X-Client-IP X-Cluster-Client-IP X-Original-URL
     X-Envoy-External-Address X-Amzn-Trace-Id CF-Connecting-IP CF-Ray True-Client-IP Fly-Client-IP Fastly-Client-IP
     Forwarded Via].each do |name|
    it "does not permit a request with #{name}, which a proxy adds" do
      header = { "HTTP_#{name.upcase.tr("-", "_")}" => "1" }
      expect(permit?(local.merge(header), RACK_ENV: "development")).to be(false)
    end
  end

  it "permits this machine's browser, by its address bar or by a page of the same app" do
    [{ "HTTP_SEC_FETCH_SITE" => "none" },
     { "HTTP_SEC_FETCH_SITE" => "same-origin", "HTTP_ORIGIN" => "http://localhost:3000" }].each do |headers|
      expect(permit?(local.merge(headers), RACK_ENV: "development")).to be(true)
    end
  end

  {
    { "REMOTE_ADDR" => "10.0.0.1" } => "This one comes from another machine.",
    { "HTTP_HOST" => "localhost.:3000" } => "The Host header must be localhost, 127.0.0.1 or [::1].",
    { "HTTP_CF_RAY" => "1" } => "A proxy has added Cf-Ray.",
    { "HTTP_SEC_FETCH_SITE" => "cross-site" } =>
      "A page of another site or port has sent this one: type the address in instead."
  }.each do |header, reason|
    it "says of a request with #{header} why it is not permitted in development, and not elsewhere" do
      env = local.merge(header)
      expect(refusal(env, RACK_ENV: "development")).to end_with("APP_ENV). #{reason}")
      expect(refusal(env, RACK_ENV: "production")).to end_with("APP_ENV).")
    end
  end

  it "permits only those whom the callable permits" do
    authorize = ->(env) { env["token"] }
    expect(permit?({ "token" => "yes" }, authorize: authorize, RACK_ENV: "production")).to be(true)
    expect(permit?(local, authorize: authorize, RACK_ENV: "development")).to be(false)
  end

  it "propagates what the callable raises" do
    expect { permit?(local, authorize: ->(_) { raise "no" }, RACK_ENV: "development") }.to raise_error("no")
  end

  it "refuses an object that cannot be called" do
    expect { described_class.new(true) }
      .to raise_error(TypeError, "authorize must be nil or something to call, got true")
  end
end
