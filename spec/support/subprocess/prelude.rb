# frozen_string_literal: true

# Loaded into the programs that `run_ruby` runs, so that they have `new_collector`, too.

# With M:N threads the VM can crash while it ends them with the process (https://github.com/ruby/ruby/pull/17736). So it
# ends without that, after everything else that is to happen at exit, unless there is an exception to report.
if ENV["RUBY_MN_THREADS"] == "1"
  at_exit do
    error = $! # rubocop:disable Style/SpecialGlobalVars
    if error.nil? || error.is_a?(SystemExit)
      [$stdout, $stderr].each(&:flush)
      exit!(error ? error.status : true)
    end
  end
end

require "ruby_memprofiler_pprof"
require_relative "../gc_pressure"
require_relative "../new_collector"

TOPLEVEL_BINDING.receiver.extend(NewCollector)
