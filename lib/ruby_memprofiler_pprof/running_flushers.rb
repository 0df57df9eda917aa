# frozen_string_literal: true

require "ruby_memprofiler_pprof/atfork"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # The flushers that were started and not stopped: those whose thread a forked child lacks, and those that flush a last
  # time when the process exits; and the sinks that they hand profiles to, which are finished after them.
  # @api private
  module RunningFlushers
    @flushers ||= [].freeze
    @sinks ||= [].freeze
    @mutex ||= Mutex.new

    class << self
      # @return [Exception, nil] what ends the process, once it exits
      attr_reader :reason

      # @return [Array<BlockFlusher>]
      def to_a
        @flushers
      end

      # @param flusher [BlockFlusher]
      # @return [void]
      def add(flusher)
        replace { |flushers| flushers.include?(flusher) ? flushers : flushers + [flusher] }
        finish_at_exit
      end

      # Unless it was started again meanwhile.
      # @param flusher [BlockFlusher]
      # @return [void]
      def remove(flusher)
        replace { |flushers| flusher.running? ? flushers : flushers - [flusher] }
      end

      # @param sink [#after_fork, #finish]
      # @return [void]
      def add_sink(sink)
        @mutex.synchronize { @sinks = [*@sinks, sink].uniq.freeze }
        finish_at_exit
      end

      # @param sink [#after_fork, #finish]
      # @return [void]
      def remove_sink(sink)
        @mutex.synchronize { @sinks = (@sinks - [sink]).freeze }
      end

      # To be called as early as possible: exit blocks run in reverse order, so that the last flush comes after what the
      # program does at exit (minitest runs a whole suite there). A child inherits the block, `exit!` skips it.
      # @return [void]
      def install
        return if @installed

        @installed = true
        Atfork.at_fork(:child) do
          # Its parent may.
          self.exiting = false
          each_alone(@sinks + @flushers, &:after_fork)
        end
        finish_at_exit
      end

      private

      # Unless that is still to come, as it is except in exit blocks that are older than it and so come later; or goes
      # on, also in the process that forked this one: what is started for each last flush would never end.
      def finish_at_exit
        return if @awaiting_exit || @finishing

        @awaiting_exit = true
        at_exit do
          # What a flusher rescues would replace it.
          @reason = $! # rubocop:disable Style/SpecialGlobalVars
          @awaiting_exit = false
          finish
        end
      end

      def finish
        @finishing = true
        # Profiles say so, as what held objects may be gone.
        self.exiting = true
        each_alone(@flushers, &:finish)
      ensure
        # Also after a second Ctrl-C.
        each_alone(@sinks, &:finish)
        self.exiting = @finishing = false
      end

      # Yields one after the other. What one raises is no reason to leave out the others.
      def each_alone(list)
        list.each do |each|
          yield each
        rescue StandardError, ScriptError => e
          StderrLogger.error("#{each.class}: #{e.class}: #{e.message}")
        end
      end

      # The list is replaced, never changed, so that a fork at any moment sees a whole one.
      def replace
        @mutex.synchronize { @flushers = yield(@flushers).freeze }
        nil
      end
    end
  end
end
