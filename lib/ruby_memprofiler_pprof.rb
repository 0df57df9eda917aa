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
#
# @!method self.collectors
#   All collectors that run, or were stopped and not flushed since. A collector among them is kept alive, as a running
#   Thread is.
#   @return [Array<Collector>]
# @!method self.without_profiling
#   Calls the block; what this thread or fiber allocates meanwhile is in no collector's profiles.
#   @return [Object] the block's value
module MemprofilerPprof
  # @!parse
  #   # What all errors of this gem are.
  #   class Error < StandardError; end
  #   # A flush of a collector that was never started.
  #   class NotStartedError < Error; end
  #   # A start off the main Ractor, or beside another one where this Ruby would crash.
  #   class RactorError < Error; end
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
