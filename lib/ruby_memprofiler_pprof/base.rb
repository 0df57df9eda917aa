# frozen_string_literal: true

require "ruby_memprofiler_pprof/version"
require "ruby_memprofiler_pprof/extension"

# A sampling heap profiler: which call paths allocated the objects that are alive now, as gzipped pprof.
#
# {Collector} samples, {Collector#flush} returns a {ProfileData}; {FileFlusher} does so periodically.
#
# @!method self.collectors
#   All collectors that run, or were stopped and not flushed since. They are kept alive,
#   like a running Thread. They belong to the main Ractor; any other one gets an empty Array.
#   @return [Array<Collector>]
# @!method self.without_profiling
#   Calls the block; what this fiber allocates in the meantime is in no profile. Other threads and fibers are not
#   affected, not even those that the block creates, as `Enumerator#next` does.
#   @return [Object] the block's value
#   @raise [ArgumentError] without a block
# @!method self.with_labels(labels = {}, **more)
#   Calls the block; what this fiber allocates in the meantime has the labels, in addition to those in force already, in
#   every profile that reports it. Other threads and fibers are not affected, not even those that the block creates.
#   @example
#     MemprofilerPprof.with_labels(endpoint: "users#show") { render }
#   @param labels [Hash{Symbol, String => String, Symbol, Numeric, Boolean, nil}] nil removes a label. Values are cut at
#     256 bytes. At most 16 labels can be in force at a time; `class`, `gc_age` and names that begin with `pprof::` are
#     reserved
#   @return [Object] the block's value
#   @raise [ArgumentError, TypeError] naming the label, its value and what is allowed
# @!method self.labels
#   @return [Hash{Symbol => String}] the labels in force in this fiber, frozen
module MemprofilerPprof
  # @!parse
  #   # The superclass of all errors of this gem.
  #   class Error < StandardError; end
  #   # A flush of a collector that was never started.
  #   class NotStartedError < Error; end
  #   # Bytes that are not a valid profile, or profiles that cannot be combined or written in this way.
  #   class ProfileError < Error; end
  #   # A start, or a use of the process's profiler, off the main Ractor; or a start beside another one where this Ruby
  #   # would crash.
  #   class RactorError < Error; end
  #   # Who holds the objects cannot be found out, here or at the moment. The message says why, and what would help.
  #   class RetainersError < Error; end
  #   # A bug of this gem that it has detected itself. The collector stays off.
  #   class InternalError < Error; end

  # Loaded at their first use, since few programs need them.
  autoload :Memory, "ruby_memprofiler_pprof/memory"
  autoload :Rack, "ruby_memprofiler_pprof/rack"
  autoload :Retainers, "ruby_memprofiler_pprof/retainers"
end

# The same module under the gem's own name.
RubyMemprofilerPprof = MemprofilerPprof unless defined?(RubyMemprofilerPprof)

require "ruby_memprofiler_pprof/block_endings"
require "ruby_memprofiler_pprof/collector"
require "ruby_memprofiler_pprof/profile"
require "ruby_memprofiler_pprof/profile_data"
require "ruby_memprofiler_pprof/cpu"
require "ruby_memprofiler_pprof/ractor_guard"
require "ruby_memprofiler_pprof/atfork"
require "ruby_memprofiler_pprof/running_flushers"
require "ruby_memprofiler_pprof/block_flusher"
require "ruby_memprofiler_pprof/file_flusher"
require "ruby_memprofiler_pprof/configuration"
require "ruby_memprofiler_pprof/module_api"

# Registered before the flushers' handler, so that a child's collectors are ready when its flushers start again.
MemprofilerPprof::Atfork.at_fork(:child) do
  MemprofilerPprof.forget_threads
  MemprofilerPprof.collectors.each(&:after_fork)
  MemprofilerPprof::CPU.after_fork
  MemprofilerPprof::BlockEndings.after_fork
end
MemprofilerPprof::RunningFlushers.install
