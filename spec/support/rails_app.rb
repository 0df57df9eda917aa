# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# A Rails app in a directory of its own, for examples with the metadata `:rails`.
module RailsApp
  SOURCE = File.expand_path("../apps/pantry", __dir__)

  # @return [Boolean]
  def self.available?
    UsableGems.include?("rails")
  end

  # @return [String] the app's directory
  def app
    @app ||= Dir.mktmpdir.tap { |directory| FileUtils.cp_r("#{SOURCE}/.", directory) }
  end

  # Assigns settings in the app's config/initializers.
  # @param code [String] such as "config.enabled = true"
  def configure(code)
    FileUtils.mkdir_p("#{app}/config/initializers")
    File.write("#{app}/config/initializers/memprofiler_pprof.rb",
               "Rails.application.config.memprofiler_pprof.tap { |config| #{code} }")
  end

  # Runs code in the booted app.
  # @return [SubprocessHelpers::Outcome]
  def in_app(code, options: [], **keywords)
    ruby_in_app(*options, "-e", "require './config/environment'\n#{code}", **keywords)
  end

  # @return [SubprocessHelpers::Outcome]
  def ruby_in_app(*arguments, env: {}, **keywords)
    env = { "RAILS_ENV" => "production", "RUBYLIB" => SubprocessHelpers::LIB, **env }
    run_command(RbConfig.ruby, *load_path_options, *arguments, env: env, chdir: app, **keywords)
  end

  # @return [SubprocessHelpers::Outcome]
  def rake(*arguments, **keywords)
    ruby_in_app("-S", "rake", *arguments, **keywords)
  end

  # @return [Array<String>] the profiles below a directory of the app
  def profiles(directory = "tmp/profiles")
    Dir["#{app}/#{directory}/*.pprof"]
  end

  # @return [Hash{String, nil => Integer}] the jars in a profile, by a label's value
  def jars(path, label)
    samples = MemprofilerPprof::Profile.load(path).tag(class: "Jar").samples
    samples.group_by { |sample| sample.labels[label] }
           .transform_values { |group| group.sum { |sample| sample.values[2] } }
  end

  def remove_app
    FileUtils.rm_rf(@app) if @app
  end
end

RSpec.configure do |config|
  config.include RailsApp, :rails
  config.before(:each, :rails) { skip "Rails is not installed" unless RailsApp.available? }
  config.after(:each, :rails) { remove_app }
end
