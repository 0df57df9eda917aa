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

      private

      # @param type [Symbol, String, Profile::SampleType, nil] nil for the profile's default
      # @return [Profile::SampleType]
      def sample_type(profile, type)
        profile.sample_types[profile.__send__(:column, type)]
      end
    end
  end
end
