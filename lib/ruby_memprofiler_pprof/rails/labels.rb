# frozen_string_literal: true

require "ruby_memprofiler_pprof/own_labels"

module MemprofilerPprof
  module Rails
    # Modules that are prepended, so that callbacks of actions and jobs have the labels, too.
    # @api private
    module Labels
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
