# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # Where the resident memory of a process is.
    class Memory
      # @param memory [MemprofilerPprof::Memory]
      def initialize(memory)
        @memory = memory
      end

      # @param style [Style]
      # @return [String]
      def to_s(style = PLAIN)
        Text.section(section, style)
      end

      # @param data [Hash{Symbol => Object}] what JSON says besides
      # @param about [Hash{Symbol => Object}] other members of the section
      # @return [Section]
      # @api private
      def section(data: {}, **about)
        MemoryText.new(@memory).section(data: { **data, **to_h }, **about)
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        @memory.to_h
      end
    end
  end
end
