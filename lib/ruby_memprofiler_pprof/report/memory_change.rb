# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # By how much the resident memory of two profiles differs, and which parts of it.
    #
    # @api private
    class MemoryChange
      # Parts that have changed by less than this share of the resident memory are not named.
      LEAST_SHARE = 0.005
      private_constant :LEAST_SHARE

      # @param old [MemprofilerPprof::Memory, nil]
      # @param new [MemprofilerPprof::Memory, nil]
      def initialize(old, new)
        @old = old
        @new = new
      end

      # @return [String, nil] a sentence; nil if a profile does not say where the memory was
      def sentence
        return unless @old&.rss && @new&.rss

        named = parts.map { |name, bytes| "#{name} #{size(bytes)}" }.join(", ")
        "Resident memory since the old profile: #{size(@new.rss - @old.rss)}#{" (#{named})" unless named.empty?}."
      end

      private

      # @return [Array<Array(String, Integer)>] the groups that differ by more than their error, and by how many bytes
      def parts
        return [] unless known(@old) == known(@new)

        before = MemoryText.groups(@old)
        MemoryText.groups(@new).map { |name, bytes| [name, bytes - before[name]] }
                  .select { |name, bytes| bytes.abs > [error(name), LEAST_SHARE * @new.rss].max }
                  .sort_by { |_, bytes| -bytes.abs }
      end

      # What is not known is part of another line.
      def known(memory)
        memory.lines.select(&:bytes).map(&:key)
      end

      # Half the 95 % interval of a change if the samples of both profiles were independent: the most that it can be.
      # What is left when estimates are subtracted is as uncertain as these.
      def error(name)
        lines = [@old, @new].flat_map(&:lines)
        mine = lines.select { |line| MemoryText::GROUPS[name].include?(line.key) }
        mine = lines if mine.any? { |line| line.source == :remainder }
        Math.sqrt(mine.filter_map(&:interval).sum { |low, high| ((high - low) / 2.0)**2 })
      end

      def size(value)
        Units.format(value, "bytes", signed: true)
      end
    end
  end
end
