# frozen_string_literal: true

require "ruby_memprofiler_pprof"
require "ruby_memprofiler_pprof/testing/leak_check"
require "ruby_memprofiler_pprof/testing/limit"
require "ruby_memprofiler_pprof/testing/measurement"
require "ruby_memprofiler_pprof/testing/report"
require "ruby_memprofiler_pprof/testing/selection"

module MemprofilerPprof
  # What the RSpec matchers and the Minitest assertions share: settings, and (private) how they count.
  #
  # Every allocation is followed, so that the figures are counts, not estimates.
  module Testing
    # Where profiles go when nothing else is set.
    DEFAULT_PROFILE_PATTERN = "tmp/profiles/test-%{pid}-%{isotime}.pprof"

    @profile_pattern = FilePattern.new(DEFAULT_PROFILE_PATTERN)
    @collector_options = {}.freeze
    @saved = 0

    class << self
      # @return [Hash{Symbol => Object}] further options for the collectors
      attr_reader :collector_options

      # @return [String] the pattern as it was given
      def profile_pattern
        @profile_pattern.to_s
      end

      # @param pattern [String, Pathname] the names of the profiles that failures save, see {FilePattern}
      # @raise [ArgumentError, TypeError] as {FilePattern#initialize}
      def profile_pattern=(pattern)
        @profile_pattern = FilePattern.new(pattern)
      end

      # @param options [Hash{Symbol => Object}] further options for the collectors, such as `liveness: :freeobj`; see
      #   {Collector#initialize}
      # @raise [ArgumentError, TypeError] as {Collector#initialize}
      def collector_options=(options)
        Collector.new(**options)
        @collector_options = options.dup.freeze
      end

      # @param profile [ProfileData]
      # @return [String] the path of the file, or why there is none
      # @api private
      def save(profile)
        AtomicFile.create(@profile_pattern.expand(index: @saved), profile.pprof_data).tap { @saved += 1 }
      rescue SystemCallError, IOError => e
        "not saved: #{e.message}"
      end
    end
  end
end
