# frozen_string_literal: true

require "ruby_memprofiler_pprof/own_labels"

module MemprofilerPprof
  module Rails
    # Modules that are prepended, so that callbacks of actions and jobs have the labels, too.
    # @api private
    module Labels
      # Patches the app, once. What is not loaded yet is patched when it is.
      # @param options [Options]
      # @return [void]
      def self.install(options)
        return if @installed

        @installed = true
        ActiveSupport.on_load(:action_controller) { prepend Controller } if options.label_controllers
        return unless options.label_jobs

        ActiveSupport.on_load(:active_job) { prepend Job }
        install_in_runners
      end

      # Labels jobs that do not use Active Job, for the gems that are loaded.
      def self.install_in_runners
        if defined?(::Sidekiq.configure_server)
          require "ruby_memprofiler_pprof/sidekiq"
          Sidekiq::Middleware.install
        end
        if defined?(::Delayed::Backend::Base)
          require "ruby_memprofiler_pprof/delayed_job"
          DelayedJob.install
        end
        return unless defined?(::Resque::Job)

        require "ruby_memprofiler_pprof/resque"
        Resque.install
      end
      private_class_method :install_in_runners

      # For ActionController::Base and ::API.
      module Controller
        # Whatever the action allocates has the label `endpoint`, such as "admin/users#show".
        def process_action(*)
          labels = OwnLabels.fitting({ endpoint: "#{controller_path}##{action_name}" })
          MemprofilerPprof.with_labels(labels) { super }
        end
      end

      # For ActiveJob::Base.
      module Job
        # Whatever the job allocates has the label `job`, the name of its class.
        def perform_now(*)
          MemprofilerPprof.with_labels(OwnLabels.fitting({ job: self.class.name })) { super }
        end
      end
    end
  end
end
