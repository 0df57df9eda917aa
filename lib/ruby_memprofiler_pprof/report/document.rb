# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # A sentence about profiles.
    #
    # @!attribute code
    #   @return [String] one of {Codes}
    # @!attribute text
    #   @return [String]
    # @api private
    Note = Struct.new(:code, :text) do
      # @param texts [Hash{String => String, nil}] by code; nil where there is nothing to say
      # @return [Array<Note>]
      def self.list(texts)
        texts.compact.map { |code, text| new(code, text) }
      end
    end

    # What a report says of one process, pair or sum of profiles.
    #
    # @!attribute group
    #   @return [String, nil] what this section and its neighbours have in common: "release=1.2"
    # @!attribute title
    #   @return [String, nil]
    # @!attribute notes
    #   @return [Array<Note>, nil]
    # @!attribute summary
    #   @return [String, nil] what stands above the table
    # @!attribute table
    #   @return [Table, nil] a row per finding, the most important first
    # @!attribute closing
    #   @return [String, Array<String>, nil] what stands below the table; an Array has paragraphs
    # @!attribute data
    #   @return [Hash{Symbol => Object}] for JSON, with the findings in full
    # @api private
    Section = Struct.new(:group, :title, :notes, :summary, :table, :closing, :data, keyword_init: true)

    # All that a command has found. {Text}, {Json} and {Markdown} show it.
    #
    # @!attribute command
    #   @return [String]
    # @!attribute inputs
    #   @return [Array<String>] the names of the files
    # @!attribute sections
    #   @return [Array<Section>]
    # @!attribute notes
    #   @return [Array<Note>] about all sections
    # @api private
    Document = Struct.new(:command, :inputs, :sections, :notes, keyword_init: true)
  end
end
