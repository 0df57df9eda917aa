# frozen_string_literal: true

require "ruby_memprofiler_pprof/file_series"
require "ruby_memprofiler_pprof/periodic_thread"
require "ruby_memprofiler_pprof/running_flushers"

module MemprofilerPprof
  class OnDemand
    # A series of profiles of this process in memory, for `leaks` where no files are written. It begins when it is first
    # asked for, is thinned like files are ({FileSeries}), and ends when nobody has asked for a day, when the collector
    # stops, or in a forked child.
    # @api private
    class RecentProfiles
      # Seconds from one profile to the next.
      INTERVAL = 30
      # How many profiles there are at most, and how many bytes in all.
      MOST = 24
      MOST_BYTES = 16_777_216
      # After how many seconds without a request it ends.
      IDLE = 86_400
      # How many seconds the end waits for a profile that is being taken.
      STOP_TIMEOUT = 2
      private_constant :INTERVAL, :MOST, :MOST_BYTES, :IDLE, :STOP_TIMEOUT

      # Takes the first profile.
      # @param collector [Collector]
      # @param logger [#error]
      # @param flush_options [Hash{Symbol => Object}] as for {Collector#flush}
      # @raise [Error] if the collector has no reader left
      # @raise [ThreadError] if there can be no thread
      def initialize(collector, logger, flush_options)
        @flush_options = flush_options
        @logger = logger
        @entries = []
        @asked = now
        @reader = collector.open_reader
        @thread = PeriodicThread.new(INTERVAL, name: "ruby_memprofiler_pprof leaks") { take }
        start
        take
      end

      # @return [Boolean] whether it goes on, with profiles of this collector
      def of?(collector)
        @thread.alive? && @reader.collector.equal?(collector)
      end

      # @return [Numeric] seconds from one profile to the next
      def interval
        INTERVAL
      end

      # @return [Array<String>] the profiles' bytes, oldest first
      def profiles
        @asked = now
        @entries.map(&:last)
      end

      # @return [void]
      def close
        RunningFlushers.remove_sink(self)
        @thread.stop(STOP_TIMEOUT)
        @reader.close
        @entries = []
      end
      alias after_fork close
      alias finish close

      private

      def start
        @thread.start
        RunningFlushers.add_sink(self)
      rescue ThreadError
        @reader.close
        raise
      end

      def take
        return close unless @reader.running? && now - @asked < IDLE

        @entries << [now, @reader.flush(**@flush_options).pprof_data]
        thin
      rescue StandardError, ScriptError, NoMemoryError => e
        @logger.error("MemprofilerPprof: no more profiles for leaks: #{e.class}: #{e.message} (#{e.backtrace&.first})")
        close
      end

      def thin
        while @entries.size > MOST || (@entries.size > 2 && @entries.sum { |_, bytes| bytes.bytesize } > MOST_BYTES)
          @entries.delete_at(FileSeries.superfluous(@entries.map(&:first)))
        end
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
