# frozen_string_literal: true

require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # What `ruby_memprofiler_pprof_profile CMD` makes every Ruby of CMD require first: starts a {Collector} and a
  # {FileFlusher} as the environment says (see {Configuration}), which flushes a last time at exit.
  #
  # The program comes first. Whatever goes wrong here is told on stderr, and the program runs without a profile.
  module Autostart
    class << self
      # @return [Collector, nil] what samples this process
      attr_reader :collector
      # @return [FileFlusher, nil] what writes its profiles
      attr_reader :flusher

      # Starts both, once.
      #
      # @param env [ENV, Hash{String => String}]
      # @return [Boolean] whether this process is being profiled
      def start(env = ENV)
        return true if @flusher

        require "ruby_memprofiler_pprof"
        launch(Configuration.from_env(env))
        true
      rescue StandardError, ScriptError => e
        give_up(e)
        false
      end

      private

      def launch(configuration)
        configuration.unknown.each { |name| StderrLogger.warn("#{name} is not a setting, see --help") }
        @collector = Collector.new(**configuration.collector_options)
        flusher = FileFlusher.new(@collector, **configuration.flusher_options)
        @collector.start
        flusher.start!
        @flusher = flusher
      end

      def give_up(error)
        StderrLogger.error("not profiling: #{error.message} (#{error.class})")
        @collector&.stop
        @collector = nil
      rescue StandardError
        # It was not started, or stopping fails for the same reason.
        nil
      end
    end
  end
end

MemprofilerPprof::Autostart.start
