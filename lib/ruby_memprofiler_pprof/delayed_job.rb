# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"
require "ruby_memprofiler_pprof/own_labels"

module MemprofilerPprof
  # Delayed Job's jobs as labels: whatever a job allocates has the label `job`, the name of its class. For a job of
  # Active Job that is its own class, not the wrapper's; for a delayed call the method, such as `User#remind`.
  #
  # In a Rails app the railtie does this; elsewhere:
  #
  # @example
  #   require "ruby_memprofiler_pprof/delayed_job"
  #   MemprofilerPprof::DelayedJob.install
  module DelayedJob
    # The class of the objects in which Active Job queues its jobs.
    WRAPPER = "ActiveJob::QueueAdapters::DelayedJobAdapter::JobWrapper"
    private_constant :WRAPPER

    # Patches Delayed Job, once. If the setting `enabled` is false, nothing happens.
    # @return [void]
    def self.install
      ::Delayed::Backend::Base.prepend(Job) if MemprofilerPprof.profiler.enabled?
      nil
    end

    # @param job [::Delayed::Backend::Base]
    # @return [String, nil] nil if there is none
    # @api private
    def self.name_of(job)
      payload = job.payload_object
      # Not what a job calls itself, which may be another name for each.
      return payload.display_name if payload.is_a?(::Delayed::PerformableMethod)

      name = payload.class.name
      name == WRAPPER ? payload.job_data["job_class"] : name
    rescue ::Delayed::DeserializationError
      # Which Delayed Job meets, too, and reports.
      nil
    end

    # Prepended to Delayed::Backend::Base, so that hooks of jobs have the label, too.
    # @api private
    module Job
      def invoke_job(*)
        MemprofilerPprof.with_labels(OwnLabels.fitting({ job: DelayedJob.name_of(self) })) { super }
      end
    end
  end
end
