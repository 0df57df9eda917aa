# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # {MemoryGrowth} in words.
    #
    # @api private
    class MemoryGrowthText
      HOUR = 3600
      ASK = "`memprofiler why` of the running process names large objects, sampled or not."
      private_constant :HOUR, :ASK

      # @param growth [MemoryGrowth]
      # @param code [Boolean] whether lines of code grow, too
      def initialize(growth, code: false)
        @growth = growth
        @code = code
      end

      # @return [Array<Note>] none if there are too few profiles that say where the memory was
      def notes
        return [] unless @growth.resident
        return Note.list(Codes::MEMORY_STEADY => "No part of the resident memory grows.") if @growth.findings.empty?

        Note.list(Codes::MEMORY_GROWS => "#{parts}.#{verdict}")
      end

      private

      def parts
        parts = @growth.findings.map { |finding| "#{finding.line.name} #{details(finding)}" }
        resident = Units.format(@growth.resident.rate.first * HOUR, "bytes", signed: true)
        "Of the resident memory (#{resident}/h) these parts grow: #{parts.join(", ")}"
      end

      def details(finding)
        rate, *interval = finding.growth.rate.map { |each| each * HOUR }
        slowing = ", ever more slowly" if finding.verdict == :slowing
        "#{Units.format(rate, "bytes", signed: true)}/h (#{Units.interval(*interval, "bytes")}#{slowing})"
      end

      def verdict
        return if @code || !@growth.not_objects?

        kinds = @growth.leading.map(&:kind).uniq
        return " No line of code explains it: #{kinds.join(", and ")}. #{ASK}" if @growth.leading.any?(&:untold?)

        " That is no #{@growth.growing.empty? ? "growth" : "leak"} of objects, but #{kinds.join(" and ")}."
      end
    end
  end
end
