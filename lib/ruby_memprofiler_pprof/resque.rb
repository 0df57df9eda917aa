# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"
require "ruby_memprofiler_pprof/own_labels"

module MemprofilerPprof
  # Labels for Resque: whatever a job allocates has the label `job`, the name of its class. For a job of Active Job this
  # is its own class, not the wrapper's.
  #
  # In a Rails app the railtie does this; elsewhere:
  #
  # @example
  #   require "ruby_memprofiler_pprof/resque"
  #   MemprofilerPprof::Resque.install
  module Resque
    # The class in which Active Job wraps its jobs.
    WRAPPER = "ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper"
    private_constant :WRAPPER

    # Patches Resque, once. Does nothing if the setting `enabled` is false.
    # @return [void]
    def self.install
      ::Resque::Job.prepend(Job) if MemprofilerPprof.profiler.enabled?
      nil
    end

    # @param payload [Hash{String => Object}] of a job, as it was queued
    # @return [String, nil] nil if Active Job's data has no class
    # @api private
    def self.name_of(payload)
      name = payload["class"].to_s
      name == WRAPPER ? payload.dig("args", 0, "job_class") : name
    end

    # Prepended to Resque::Job, so that the label covers the job's hooks, too.
    # @api private
    module Job
      def perform(*)
        Service.announce
        MemprofilerPprof.with_labels(OwnLabels.fitting({ job: Resque.name_of(payload) })) { super }
      end
    end
  end
end
