# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"

# A Rails app in its own directory, for examples with the metadata `:rails`. Booting one takes most of a second, so a
# `before(:context)` can create one app for all examples of a group, and put all their questions to it at once (#ask).
module RailsApp
  SOURCE = File.expand_path("../apps/pantry", __dir__)

  # The answers of a booted app.
  class Answers
    def initialize(outcome, path)
      @outcome = outcome
      @answers = File.exist?(path) ? JSON.parse(File.read(path), symbolize_names: true) : {}
    end

    # @return [Object] of a kind that JSON supports
    def [](question)
      @answers.fetch(question) { raise "no answer to #{question}: #{self}" }
    end

    def stdout
      @outcome.stdout
    end

    # What to show when an example fails.
    def to_s
      "#{@answers}\n#{@outcome}"
    end
  end

  # @return [Boolean]
  def self.available?
    UsableGems.include?("rails")
  end

  # @return [String] a directory, removed when all examples have run
  def self.copy
    Dir.mktmpdir.tap do |directory|
      FileUtils.cp_r("#{SOURCE}/.", directory)
      directories << directory
    end
  end

  def self.directories
    @directories ||= []
  end

  # @return [String] the app's directory
  def app
    @app ||= RailsApp.copy
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

  # Runs code in the booted app, one piece after another, and returns the values of all.
  # @param questions [Hash{Symbol => String}] code by name
  # @return [Answers]
  def ask(questions, **keywords)
    pieces = questions.map { |name, code| "answers[:#{name}] = proc do\n#{code}\nend.call\n" }
    code = "require 'json'\nanswers = {}\n#{pieces.join}File.write('answers.json', JSON.dump(answers))"
    Answers.new(in_app(code, **keywords), "#{app}/answers.json")
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
end

RSpec.configure do |config|
  config.include RailsApp, :rails
  config.before(:context, :rails) { skip "Rails is not installed" unless RailsApp.available? }
  config.after(:suite) { FileUtils.rm_rf(RailsApp.directories) }
end
