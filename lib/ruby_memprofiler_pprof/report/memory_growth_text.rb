# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # {MemoryGrowth} in words.
    #
    # @api private
    class MemoryGrowthText
      HOUR = 3600
      ASK = "`memprofiler why` of the running process names large objects, sampled or not."
      # A site that has gained less of what the process has is no explanation.
      LEAST_PART = 0.1
      private_constant :HOUR, :ASK, :LEAST_PART

      # @param growth [MemoryGrowth]
      # @param code [Boolean] whether lines of code grow, too
      # @param gainer [Array(String, Integer), nil] which other site most likely grows, and by how many bytes it has
      def initialize(growth, code: false, gainer: nil)
        @growth = growth
        @code = code
        @gainer = gainer
      end

      # @return [Array<Note>] none if there are too few profiles that say where the memory was
      def notes
        return [] unless @growth.resident
        return Note.list(Codes::MEMORY_GROWS => untold) if @growth.untold?
        return Note.list(Codes::MEMORY_STEADY => "No part of the resident memory grows.") if @growth.findings.empty?

        Note.list(Codes::MEMORY_GROWS => "#{parts}.#{verdict}")
      end

      private

      def untold
        "The resident memory grows: #{rates(@growth.resident)}. It cannot be told which part, as what objects own is " \
          "known from samples only.#{where_to_look unless @code}"
      end

      # If nothing is sure: what grows may be of a line that has few samples.
      def where_to_look
        name, gain = @gainer
        return " #{ASK}" unless name && gain >= LEAST_PART * @growth.gain

        " Most likely that is #{name}, with #{Units.format(gain, "bytes", signed: true)}. #{ASK}"
      end

      def parts
        parts = @growth.findings.map { |finding| "#{finding.line.name} #{details(finding)}" }
        resident = Units.format(@growth.resident.rate.first * HOUR, "bytes", signed: true)
        "Of the resident memory (#{resident}/h) these parts grow: #{parts.join(", ")}"
      end

      def details(finding)
        rates(finding.growth, (", ever more slowly" if finding.verdict == :slowing))
      end

      def rates(growth, addition = nil)
        rate, *interval = growth.rate.map { |each| each * HOUR }
        "#{Units.format(rate, "bytes", signed: true)}/h (#{Units.interval(*interval, "bytes")}#{addition})"
      end

      def verdict
        return if @code
        return where_to_look unless @growth.not_objects?

        kinds = @growth.leading.map(&:kind).uniq
        return " No line of code explains it: #{kinds.join(", and ")}. #{ASK}" if @growth.leading.any?(&:untold?)

        " That is no #{@growth.growing.empty? ? "growth" : "leak"} of objects, but #{kinds.join(" and ")}."
      end
    end
  end
end
