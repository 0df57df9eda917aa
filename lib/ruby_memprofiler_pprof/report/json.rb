# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Shows what was found as JSON, with full names and exact numbers. docs/reports-and-leaks.md describes it.
    #
    # @api private
    class Json
      # Is raised when a member is removed or renamed, or means something else; new ones leave it.
      SCHEMA_VERSION = 1

      # @param document [Document]
      def initialize(document)
        @document = document
      end

      # @return [String]
      def to_s
        require "json"
        sections = @document.sections.map { |section| { **section.data, notes: notes(section) } }
        "#{JSON.pretty_generate(schema_version: SCHEMA_VERSION, generator: "ruby_memprofiler_pprof #{VERSION}",
                                command: @document.command, inputs: @document.inputs.map(&:scrub),
                                notes: notes(@document), sections: sections)}\n"
      end

      private

      def notes(part)
        part.notes.map(&:to_h)
      end
    end
  end
end
