# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"
require "ruby_memprofiler_pprof/own_labels"

module MemprofilerPprof
  # Resque's jobs as labels: whatever a job allocates has the label `job`, the name of its class. For a job of Active
  # Job that is its own class, not the wrapper's.
  #
  # In a Rails app the railtie does this; elsewhere:
  #
  # @example
  #   require "ruby_memprofiler_pprof/resque"
  #   MemprofilerPprof::Resque.install
  module Resque
    # The class as which Active Job queues its jobs.
    WRAPPER = "ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper"
    private_constant :WRAPPER

    # Patches Resque, once. If the setting `enabled` is false, nothing happens.
    # @return [void]
    def self.install
      ::Resque::Job.prepend(Job) if MemprofilerPprof.profiler.enabled?
      nil
    end

    # @param payload [Hash{String => Object}] of a job, as it was queued
    # @return [String, nil] nil if there is none
    # @api private
    def self.name_of(payload)
      name = payload["class"].to_s
      name == WRAPPER ? payload.dig("args", 0, "job_class") : name
    end

    # Prepended to Resque::Job, so that hooks of jobs have the label, too.
    # @api private
    module Job
      def perform(*)
        MemprofilerPprof.with_labels(OwnLabels.fitting({ job: Resque.name_of(payload) })) { super }
      end
    end
  end
end
