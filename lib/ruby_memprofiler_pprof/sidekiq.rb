# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"
require "ruby_memprofiler_pprof/own_labels"

module MemprofilerPprof
  # Sidekiq's jobs as labels. In a Rails app the railtie does this; elsewhere:
  #
  # @example
  #   require "ruby_memprofiler_pprof/sidekiq"
  #   MemprofilerPprof::Sidekiq::Middleware.install
  module Sidekiq
    # A server middleware: whatever a job allocates has the label `job`, the name of its class. For a job of Active Job
    # that is its own class, not the wrapper's.
    class Middleware
      # Has Sidekiq's server use it. In other processes, and if the setting `enabled` is false, nothing happens.
      # @return [void]
      def self.install
        return unless MemprofilerPprof.profiler.enabled?

        ::Sidekiq.configure_server do |config|
          Service.announce
          config.server_middleware { |chain| chain.add(self) }
        end
        nil
      end

      # @param _instance [Object] the job
      # @param job [Hash{String => Object}] as it was queued
      # @param _queue [String]
      # @return [Object] the block's value
      def call(_instance, job, _queue, &)
        MemprofilerPprof.with_labels(OwnLabels.fitting({ job: job["wrapped"] || job["class"] }), &)
      end
    end
  end
end
