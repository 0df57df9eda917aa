# frozen_string_literal: true

# Loaded into the programs that `run_ruby` runs, so that they have `new_collector`, too.
require "ruby_memprofiler_pprof"
require_relative "../gc_pressure"
require_relative "../new_collector"

TOPLEVEL_BINDING.receiver.extend(NewCollector)
