# frozen_string_literal: true

module MemprofilerPprof
  # The labels that this gem puts on requests and jobs by itself. What they are put on must run in any case, also where
  # there are as many labels already as can be in force.
  # @api private
  module OwnLabels
    # As the extension has it (LabelSet::MAX_PAIRS).
    MOST = 16
    private_constant :MOST

    # @param labels [Hash{Symbol => String, nil}]
    # @return [Hash{Symbol => String, nil}] those labels; none if there is no room for them
    def self.fitting(labels)
      MemprofilerPprof.labels.merge(labels).size > MOST ? {} : labels
    end
  end
end
