# frozen_string_literal: true

require "ruby_memprofiler_pprof"
Dir[File.join(__dir__, "support", "*.rb")].each { |file| require file }

RSpec.configure do |config|
  config.disable_monkey_patching!
  config.raise_errors_for_deprecations!
  config.raise_on_warning = true
  config.order = :random
  Kernel.srand(config.seed)
  config.filter_run_when_matching(:focus)
  config.expect_with(:rspec) do |expectations|
    expectations.syntax = :expect
    expectations.include_chain_clauses_in_custom_matcher_descriptions = true
  end
  config.mock_with(:rspec) do |mocks|
    mocks.syntax = :expect
    mocks.verify_partial_doubles = true
  end

  config.include CollectorHelpers
  config.include GcHelpers
  config.include StandIns
  config.include SubprocessHelpers
  config.include WaitHelpers

  # :go needs `go tool pprof`, :protobuf Google's library.
  config.before(:each, :go) { skip "go is not installed" unless Pprof::GoPprof.available? }
  config.before(:each, :protobuf) do
    skip "the gem google-protobuf is not installed" unless Pprof::ProtobufDecoder.available?
  end
  config.after { stop_collectors }
end
