# frozen_string_literal: true

RSpec.describe "rails generate memprofiler_pprof:install", :rails do
  def generate
    outcome = ruby_in_app("bin/rails", "generate", "memprofiler_pprof:install")
    raise outcome.to_s unless outcome.success?
  end

  it "writes an initializer, with which the profiler runs" do
    generate
    outcome = in_app("puts MemprofilerPprof.running?, MemprofilerPprof.config.interval")
    expect(outcome.stdout).to start_with("true\n300\n"), outcome.to_s
  end

  it "writes settings of which all that are commented out stand at their defaults" do
    generate
    path = "#{app}/config/initializers/memprofiler_pprof.rb"
    File.write(path, File.read(path).gsub(/^  # (config\.(?!endpoint))/, '  \1'))
    defaults = MemprofilerPprof::Configuration.new.to_h.merge(interval: 300)
    expect(in_app("p MemprofilerPprof.config.to_h").stdout).to start_with("#{defaults}\n")
  end

  it "proposes an access rule that lets nobody in without a token" do
    generate
    path = "#{app}/config/initializers/memprofiler_pprof.rb"
    File.write(path, File.read(path).gsub(/^  # (config\.endpoint_authorize|  |end$)/, '  \1'))
    code = "p Rails.application.config.memprofiler_pprof.endpoint_authorize.call('HTTP_X_TOKEN' => ENV['PPROF_TOKEN'])"
    answers = ["", "x"].map { |token| in_app(code, env: { "PPROF_TOKEN" => token }).stdout[/\w+/] }
    expect(answers).to eq(%w[false true])
  end

  it "has git ignore the profiles" do
    File.write("#{app}/.gitignore", "/log\n")
    generate
    expect(File.read("#{app}/.gitignore")).to eq("/log\n\n/tmp/profiles/\n")
  end

  it "adds nothing where all of tmp is ignored" do
    File.write("#{app}/.gitignore", "/tmp/*\n")
    generate
    expect(File.read("#{app}/.gitignore")).to eq("/tmp/*\n")
  end
end
