# frozen_string_literal: true

require "ruby_memprofiler_pprof/background_thread"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # Performs actions when signals arrive. A signal handler may take no lock, so each action runs in a thread of its own.
  #
  # A handler that was installed before is called as well; one that the program installs later replaces this one.
  # @api private
  class SignalActions
    # How many actions can wait for those before them; further signals are ignored.
    LIMIT = 8
    private_constant :LIMIT

    # @param perform [Proc] is called with the name of an action
    def initialize(&perform)
      @perform = perform
      @signals = {}.freeze
      @traps = {}
      @threads = []
      @mutex = Mutex.new
    end

    # Performs `action` at `signal` from now on, instead of at the signal that was given for it before.
    # @param action [Symbol]
    # @param signal [String, nil] such as "USR2"; nil for none
    # @return [void]
    # @raise [ArgumentError] if this process cannot handle it
    def install(action, signal)
      former = @signals[action]
      return if former == signal

      @traps[signal] ||= Trap.new(signal) { request_all(signal) } if signal
      # Replaced, never changed: a handler may be reading it.
      @signals = @signals.merge(action => signal).freeze
      @traps.delete(former).remove if former && !@signals.value?(former)
    end

    # A handler of a signal.
    class Trap
      # @param signal [String]
      # @param work [Proc] is called at the signal, before the handler that was there
      def initialize(signal, &work)
        @signal = signal
        @work = work
        @handler = proc do |number|
          @work&.call
          @previous.call(number) if @previous.respond_to?(:call)
        end
        @previous = Signal.trap(signal, @handler)
      end

      # Restores the previous handler, unless another one has replaced this one. That one may still call this one,
      # which then only calls the previous handler.
      # @return [void]
      def remove
        @work = nil
        # The only way to learn which handler is installed is to replace it.
        current = Signal.trap(@signal, @handler)
        Signal.trap(@signal, current.equal?(@handler) ? @previous : current)
      end
    end
    private_constant :Trap

    private

    def request_all(signal)
      @signals.each { |action, other| request(action) if other == signal }
    end

    # Called in a signal handler.
    def request(action)
      # In a forked child the threads of the parent are dead.
      @threads = @threads.select(&:alive?)
      return if @threads.size >= LIMIT

      @threads += [BackgroundThread.start("ruby_memprofiler_pprof #{action}") { perform(action) }]
    rescue ThreadError => e
      StderrLogger.error("cannot #{action}: #{e.message}")
    end

    def perform(action)
      @mutex.synchronize { @perform.call(action) }
    rescue StandardError, ScriptError => e
      StderrLogger.error("cannot #{action}: #{e.message} (#{e.class})")
    end
  end
end
