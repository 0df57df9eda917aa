# frozen_string_literal: true

require "rbconfig"

# Runs Ruby code with the library that `rake compile:faults` builds, in which faults can be injected; the environment's
# SPEC_FAULTS names its folder. See ext/ruby_memprofiler_pprof/src/faults/api.rs.
module Faulty
  FOLDER = ENV["SPEC_FAULTS"].to_s
  # The beginning of a program that has the methods of BesideChild.
  BESIDE_CHILD = "require #{File.expand_path("subprocess/beside_child", __dir__).inspect}\n".freeze

  module_function

  # @param code [String] has `new_collector` and `faults`
  # @return [SubprocessHelpers::Outcome]
  def run_faulty(code, **keywords)
    prelude = "-r#{SubprocessHelpers::PRELUDE}"
    run_command(RbConfig.ruby, "-I#{FOLDER}", *load_path_options, prelude, "-e", <<~RUBY, **keywords)
      def faults = MemprofilerPprof::Faults
      #{code}
    RUBY
  end

  # The output of the code, after it has ended successfully.
  # @return [Array<String>] lines
  def printed_by(code, **keywords)
    outcome = run_faulty(code, **keywords)
    raise outcome.to_s unless outcome.success?

    outcome.stdout.lines(chomp: true)
  end
end

RSpec.configure do |config|
  config.include Faulty, :faults
  config.before(:each, :faults) { skip "script/test --lane faults runs it" if Faulty::FOLDER.empty? }
end
