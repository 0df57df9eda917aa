# frozen_string_literal: true

require "ruby_memprofiler_pprof/report"

module MemprofilerPprof
  class OnDemand
    # What the command `leaks` says of this process, from the profiles that there are so far.
    # @api private
    class LeakReport
      # How many profiles are read, evenly from all. More take more of the program's time and memory.
      MOST = 24
      # With so many profiles, more are hardly better.
      ENOUGH = 20
      private_constant :MOST, :ENOUGH

      # @param profiles [Array<String>] names of files, or bytes, oldest first
      # @param interval [Numeric] seconds from one to the next
      # @param by [Symbol] one of Profile::Aggregation::GROUPINGS
      # @param limit [Integer] the most sites
      def initialize(profiles, interval, by: :line, limit: Report::Top::LIMIT)
        @interval = interval
        @by = by
        @limit = limit
        @snapshots = snapshots(some(profiles))
      end

      # @return [String] without a newline at its end
      def to_s
        [report, *advice].join("\n")
      end

      private

      def some(profiles)
        return profiles if profiles.size <= MOST

        Array.new(MOST) { |index| profiles[index * (profiles.size - 1) / (MOST - 1)] }
      end

      # One after the other, since the process has other work. Of those since the collector's last start.
      def snapshots(profiles)
        snapshots = profiles.filter_map do |profile|
          Report::Snapshot.new(Profile.load(profile), by: @by)
        rescue SystemCallError
          # The file was removed meanwhile.
          nil
        end
        snapshots.group_by(&:process).values.last || []
      end

      def report
        size = @snapshots.size
        return Report::Leaks.new(@snapshots, by: @by, limit: @limit).to_s if size > 1

        "Process #{Process.pid}: #{size == 1 ? "1 profile" : "#{size} profiles"} so far, too few to tell a leak from " \
          "ups and downs: #{Report::Leaks::LEAST} are needed, #{ENOUGH} are better."
      end

      # How long to wait for more profiles.
      def advice
        goal = [Report::Leaks::LEAST, ENOUGH].find { |count| count > @snapshots.size } or return

        "One comes every #{duration(@interval)}: there will be #{goal} in " \
          "#{duration((goal - @snapshots.size) * @interval)}."
      end

      def duration(seconds)
        unit, name = [[3600.0, "h"], [60.0, "min"], [1.0, "s"]].find { |size, _| seconds >= 2 * size } || [1.0, "s"]
        "#{format("%.3g", seconds / unit)} #{name}"
      end
    end
  end
end
