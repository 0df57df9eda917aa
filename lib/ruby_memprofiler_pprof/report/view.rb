# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # What {Top}, {Tree} and {Difference} have in common: each is a summary, a table and data.
    #
    # @api private
    module View
      # @param data [Hash{Symbol => Object}] what JSON says besides
      # @param about [Hash{Symbol => Object}] other members of the section
      # @return [Section]
      def section(data: {}, **about)
        Section.new(summary: summary, table: table, data: { **data, **to_h }, **about)
      end
    end
  end
end
