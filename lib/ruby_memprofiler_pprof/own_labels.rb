# frozen_string_literal: true

module MemprofilerPprof
  # The labels that this gem puts on requests and jobs by itself. Requests and jobs must run even if there are as many
  # labels already as can be in force, in which case with_labels would raise.
  # @api private
  module OwnLabels
    # The same as LabelSet::MAX_PAIRS in the extension.
    MAX_LABELS = 16
    private_constant :MAX_LABELS

    # @param labels [Hash{Symbol => String, nil}]
    # @return [Hash{Symbol => String, nil}] those labels; none if there is no room for them
    def self.fitting(labels)
      MemprofilerPprof.labels.merge(labels).size > MAX_LABELS ? {} : labels
    end
  end
end
