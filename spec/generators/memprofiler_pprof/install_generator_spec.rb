# frozen_string_literal: true

RSpec.describe "rails generate memprofiler_pprof:install", :rails do
  # Through its command; to write into another directory, a booted app calls it.
  before(:context) do
    File.write("#{app}/.gitignore", "/log\n")
    outcome = ruby_in_app("bin/rails", "generate", "memprofiler_pprof:install")
    raise outcome.to_s unless outcome.success?
  end

  def initializer
    "#{app}/config/initializers/memprofiler_pprof.rb"
  end

  it "makes git ignore the profiles" do
    expect(File.read("#{app}/.gitignore")).to eq("/log\n\n/tmp/profiles/\n")
  end

  describe "as it is" do
    before(:context) do
      FileUtils.mkdir("#{app}/ignoring")
      File.write("#{app}/ignoring/.gitignore", "/tmp/*\n")
      invoke = 'Rails::Generators.invoke("memprofiler_pprof:install", [], destination_root: "ignoring")'
      @answers = ask({ running: "MemprofilerPprof.running?", interval: "MemprofilerPprof.config.interval",
                       again: "require 'rails/generators'; #{invoke}" })
    end

    it "writes an initializer that starts the profiler" do
      expect([@answers[:running], @answers[:interval]]).to eq([true, 300]), @answers.to_s
    end

    it "adds nothing if all of tmp is ignored" do
      expect(File.read("#{app}/ignoring/config/initializers/memprofiler_pprof.rb")).to eq(File.read(initializer))
      expect(File.read("#{app}/ignoring/.gitignore")).to eq("/tmp/*\n"), @answers.to_s
    end
  end

  describe "with nothing commented out" do
    before(:context) do
      uncommented = File.read(initializer).gsub(/^  # (config\.|  |end$)/, '  \1')
      @app = RailsApp.copy
      FileUtils.mkdir("#{app}/config/initializers")
      File.write(initializer, uncommented)
      @answers = ask({ settings: "MemprofilerPprof.config.to_h.inspect", allowed: <<~RUBY })
        ["", "x"].map do |token|
          ENV["PPROF_TOKEN"] = token
          Rails.application.config.memprofiler_pprof.endpoint_authorize.call("HTTP_X_TOKEN" => token)
        end
      RUBY
    end

    it "writes settings that are the defaults" do
      defaults = MemprofilerPprof::Configuration.new.to_h.merge(interval: 300)
      expect(@answers[:settings]).to eq(defaults.inspect), @answers.to_s
    end

    it "suggests an access rule that requires a token" do
      expect(@answers[:allowed]).to eq([false, true]), @answers.to_s
    end
  end
end
