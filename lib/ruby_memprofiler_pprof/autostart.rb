# frozen_string_literal: true

require "ruby_memprofiler_pprof/run_note"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # What `memprofiler run CMD` makes every Ruby of CMD require first: starts the profiler of this process as
  # the environment says (see {Configuration}). It writes files at an interval, and the last one at exit.
  #
  # The program comes first: whatever goes wrong here is reported on stderr, and the program runs without a profile.
  module Autostart
    class << self
      # @return [Collector, nil] what samples this process
      attr_reader :collector

      # @return [FileFlusher, nil] what writes its profiles, unless the profiler is paused
      def flusher
        MemprofilerPprof.flusher if @collector
      end

      # Starts the collector and the flusher, once.
      #
      # @return [Boolean] whether this process is profiled, or will be at a signal
      def start
        return true if @collector

        require "ruby_memprofiler_pprof/base"
        MemprofilerPprof.profiler.boot
        return false unless MemprofilerPprof.config.enabled

        RunNote.install
        @collector = MemprofilerPprof.collector
        true
      rescue StandardError, ScriptError => e
        give_up(e)
        false
      end

      private

      def give_up(error)
        StderrLogger.error("not profiling: #{error.message} (#{error.class})")
        MemprofilerPprof.stop if MemprofilerPprof.respond_to?(:stop)
      rescue StandardError
        # It was not started, or cannot be stopped for the same reason.
        nil
      end
    end
  end
end

MemprofilerPprof::Autostart.start
