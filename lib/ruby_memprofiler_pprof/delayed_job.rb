# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"
require "ruby_memprofiler_pprof/own_labels"

module MemprofilerPprof
  # Labels for Delayed Job: whatever a job allocates has the label `job`, the name of its class. For a job of Active Job
  # this is its own class, not the wrapper's; for a delayed call it is the method, such as `User#remind`.
  #
  # In a Rails app the railtie does this; elsewhere:
  #
  # @example
  #   require "ruby_memprofiler_pprof/delayed_job"
  #   MemprofilerPprof::DelayedJob.install
  module DelayedJob
    # The class in which Active Job wraps its jobs.
    WRAPPER = "ActiveJob::QueueAdapters::DelayedJobAdapter::JobWrapper"
    private_constant :WRAPPER

    # Patches Delayed Job, once. Does nothing if the setting `enabled` is false.
    # @return [void]
    def self.install
      ::Delayed::Backend::Base.prepend(Job) if MemprofilerPprof.profiler.enabled?
      nil
    end

    # @param job [::Delayed::Backend::Base]
    # @return [String, nil] nil if it has no name, or cannot be read
    # @api private
    def self.name_of(job)
      payload = job.payload_object
      # Other jobs may return a different display_name each time.
      return payload.display_name if payload.is_a?(::Delayed::PerformableMethod)

      name = payload.class.name
      name == WRAPPER ? payload.job_data["job_class"] : name
    rescue ::Delayed::DeserializationError
      # Delayed Job raises and reports it when it runs the job.
      nil
    end

    # Prepended to Delayed::Backend::Base, so that the label covers the job's hooks, too.
    # @api private
    module Job
      def invoke_job(*)
        Service.announce
        MemprofilerPprof.with_labels(OwnLabels.fitting({ job: DelayedJob.name_of(self) })) { super }
      end
    end
  end
end
