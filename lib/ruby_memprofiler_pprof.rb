# frozen_string_literal: true

require "ruby_memprofiler_pprof/version"

# A precompiled gem carries one library per Ruby minor, a compiled one a single library. Not require_relative: RubyGems
# may keep compiled extensions outside lib/.
precompiled = "ruby_memprofiler_pprof/#{RUBY_VERSION[/\A\d+\.\d+/]}/ruby_memprofiler_pprof"
begin
  require precompiled
rescue LoadError => e
  # A library that is there but cannot be loaded is what the user has to hear about.
  raise unless e.path == precompiled

  require "ruby_memprofiler_pprof/ruby_memprofiler_pprof"
end

# A sampling heap profiler: which call paths allocated the objects that are alive now, as gzipped pprof.
#
# {Collector} samples, {Collector#flush} answers with a {ProfileData}; {FileFlusher} does so periodically.
module MemprofilerPprof
end

# The same module under the gem's own name.
RubyMemprofilerPprof = MemprofilerPprof unless defined?(RubyMemprofilerPprof)

require "ruby_memprofiler_pprof/collector"
require "ruby_memprofiler_pprof/profile_data"
require "ruby_memprofiler_pprof/ractor_guard"
require "ruby_memprofiler_pprof/atfork"
require "ruby_memprofiler_pprof/running_flushers"
require "ruby_memprofiler_pprof/block_flusher"
require "ruby_memprofiler_pprof/file_flusher"
require "ruby_memprofiler_pprof/configuration"

# Before any flusher of the child starts again: that is why the collectors come first.
MemprofilerPprof::Atfork.at_fork(:child) { MemprofilerPprof.collectors.each(&:after_fork) }
MemprofilerPprof::RunningFlushers.install
