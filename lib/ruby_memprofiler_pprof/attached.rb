# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"
require "ruby_memprofiler_pprof/socket_server"

module MemprofilerPprof
  # The profiler of a process that `memprofiler attach` has brought it into.
  # @api private
  module Attached
    class << self
      # @return [Boolean] whether the profiler of this process is there because of {start}
      def running?
        @running ? true : false
      end

      # @param variables [Hash{String => String}] settings, as in the environment
      # @return [String] the file of the socket
      # @raise [Error] if the profiler runs already or is switched off, or there is no socket
      # @raise [ArgumentError, TypeError, RactorError] as {MemprofilerPprof.start}
      def start(variables)
        raise Error, "the profiler runs already#{" as the program has started it" unless running?}" if
          MemprofilerPprof.running?

        settings = settings(variables)
        # Beforehand: a start would adopt the settings, and the next one would find them.
        raise Error, "the setting enabled is false" unless MemprofilerPprof.config.merge(:argument, settings).enabled

        MemprofilerPprof.without_profiling { MemprofilerPprof.start(**settings) }
        @running = true
        MemprofilerPprof.profiler.socket || without_socket
      end

      # Takes the hooks, threads and the socket away. The library stays.
      # @return [void]
      # @raise [Error] if it does not run, or was not started here
      def stop
        raise Error, "it does not have the profiler" unless running? || MemprofilerPprof.running?
        raise Error, "the program has started the profiler itself, and has to stop it" unless running?

        MemprofilerPprof.stop
        # Removes the last hook. A collector that was never started has none.
        MemprofilerPprof.collector.flush(gc: false)
        @running = false
        nil
      end

      private

      def without_socket
        problem = MemprofilerPprof.profiler.socket_problem
        stop
        raise Error, "it could not open its socket #{problem}; --socket names another"
      end

      def settings(variables)
        given = Configuration.new(variables)
        settings = Configuration.settings.map(&:keyword).reject { |keyword| given.source(keyword) == :default }
                                .to_h { |keyword| [keyword, given[keyword]] }
        now = Time.now.utc.strftime("%FT%TZ")
        # None by default, even where `run` or Rails would write them.
        files = MemprofilerPprof.config.merge(:argument, settings).writes_files?(by_default: false)
        tags = { **MemprofilerPprof.config.tags.to_h, **given.tags.to_h, Tags::ATTACHED => now }
        { **settings, files: files, tags: tags }
      end
    end
  end
end
