# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# For specs of matchers and assertions.
module TestingHelpers
  # Makes every collector fail to start, as beside a Ractor.
  def let_no_collector_start(message)
    allow(MemprofilerPprof::Collector).to receive(:new).and_wrap_original do |make, **options|
      make.call(**options).tap do |collector|
        allow(collector).to receive(:start).and_raise(MemprofilerPprof::RactorError, message)
      end
    end
  end

  # The beginning of subprocesses' test files.
  PRELUDE = <<~RUBY.freeze
    MemprofilerPprof::Testing.collector_options = #{NewCollector.liveness.inspect}
    LEAK = []
    class Leaky
      def self.keep(value)
        LEAK << new
        value
      end
    end
  RUBY

  # Runs a test file in an empty directory.
  # @param require [String] the part of the gem to require
  # @param command [Array<String>] the program that runs it, and its arguments before the file
  # @return [SubprocessHelpers::Outcome]
  def run_tests(require, code, command, env: {})
    Dir.mktmpdir do |directory|
      directory = File.realpath(directory)
      File.write(File.join(directory, "memory_test.rb"), "require '#{require}'\n#{PRELUDE}#{code}")
      outcome = run_command(RbConfig.ruby, *load_path_options, *command, "memory_test.rb", chdir: directory, env: env)
      yield directory, outcome if block_given?
      outcome
    end
  end

  # Runs a spec file. The code starts at line 10.
  def run_rspec(code, *arguments, env: {}, &block)
    command = [Gem.bin_path("rspec-core", "rspec"), "--options", File::NULL, "--order", "defined", *arguments]
    run_tests("ruby_memprofiler_pprof/rspec", code, command, env: env, &block)
  end

  # Runs a Minitest file.
  def run_minitest(code, &)
    run_tests("ruby_memprofiler_pprof/minitest", "require 'minitest/autorun'\n#{code}", ["-rminitest"], &)
  end
end

# Everything in the group counts according to SPEC_LIVENESS, and saves profiles where they are removed again.
RSpec.shared_context "with the testing engine" do
  include TestingHelpers

  let(:directory) { Dir.mktmpdir }

  before do
    # Also where what requires it, such as Minitest's assertions, cannot be loaded.
    require "ruby_memprofiler_pprof/testing"
    MemprofilerPprof::Testing.collector_options = NewCollector.liveness
    MemprofilerPprof::Testing.profile_pattern = File.join(directory, "saved.pprof")
  end

  after do
    MemprofilerPprof::Testing.collector_options = {}
    MemprofilerPprof::Testing.profile_pattern = MemprofilerPprof::Testing::DEFAULT_PROFILE_PATTERN
    FileUtils.remove_entry(directory)
  end
end
