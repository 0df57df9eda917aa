# frozen_string_literal: true

require "ruby_memprofiler_pprof/background_thread"
require "ruby_memprofiler_pprof/periodic_thread"
require "ruby_memprofiler_pprof/running_flushers"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # Performs actions when signals arrive. A signal handler may take no lock, so each action runs in a thread of its own.
  #
  # A handler that was installed before is called as well, if it is in Ruby; a signal with one in C is left alone. One
  # that the program installs later replaces this one, which is logged.
  # @api private
  class SignalActions
    # How many actions can wait for those before them; further signals are ignored.
    LIMIT = 8
    # Seconds after which a replaced handler is noticed. A program installs its handlers when it starts.
    WATCH_INTERVAL = 60
    private_constant :LIMIT, :WATCH_INTERVAL

    # @param perform [Proc] is called with the name of an action
    def initialize(&perform)
      @perform = perform
      @signals = {}.freeze
      @traps = {}
      @threads = []
      @mutex = Mutex.new
      @watch = PeriodicThread.new(WATCH_INTERVAL, name: "ruby_memprofiler_pprof signals") { look_for_replaced }
    end

    # Performs `action` at `signal` from now on, instead of at the signal that was given for it before.
    # @param action [Symbol]
    # @param signal [String, nil] such as "USR2"; nil for none
    # @return [void]
    # @raise [ArgumentError] if this process cannot handle it
    def install(action, signal)
      former = @signals[action]
      return if former == signal

      handle(signal, action) if signal && !@traps.key?(signal)
      # Replaced, never changed: a handler may be reading it.
      @signals = @signals.merge(action => signal).freeze
      @traps.delete(former)&.remove unless @signals.value?(former)
      @traps.any? ? watch : unwatch
    end

    # Called in a forked child, which lacks the thread.
    # @return [void]
    def after_fork
      @watch.after_fork
    rescue ThreadError => e
      StderrLogger.error("a replaced signal handler will not be noticed in the forked process: #{e.message}")
    end

    # Called when the process exits.
    # @return [void]
    def finish; end

    # A handler of a signal.
    class Trap
      # What is handled by one function of Ruby's from the start.
      USUAL = %w[HUP INT QUIT ALRM TERM USR1 USR2 CHLD].freeze
      # Addresses up to this stand for the default action, and for none.
      NO_FUNCTION = 1
      private_constant :USUAL, :NO_FUNCTION

      class << self
        # Whether the handler is in C. Signal.trap does not tell which one it replaces, so it could not be restored.
        # @param signal [String]
        # @return [Boolean]
        def foreign?(signal)
          function = function(signal)
          function > NO_FUNCTION && function != usual
        end

        # @param signal [String]
        # @return [Integer] the address of the C function that handles it, which calls handlers in Ruby if it is Ruby's
        def function(signal)
          MemprofilerPprof.signal_handler(Signal.list.fetch(signal.delete_prefix("SIG")))
        end

        private

        # The program may have changed some.
        def usual
          functions = USUAL.map { |signal| function(signal) }.select { |function| function > NO_FUNCTION }
          functions.tally.max_by(&:last)&.first
        end
      end

      # @return [String]
      attr_reader :signal

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
        @function = Trap.function(signal)
      end

      # Restores the previous handler, unless another one has replaced this one. That one may still call this one,
      # which then only calls the previous handler.
      # @return [void]
      def remove
        @work = nil
        Signal.trap(@signal, @previous) unless replaced?
      end

      # @return [Boolean] true once, when another handler has replaced this one
      def newly_replaced?
        !@replaced && (@replaced = replaced?)
      end

      private

      # A handler in Ruby can only be read by replacing it, so it is put back. A handler in C, which Ruby does not know,
      # would be lost: it is recognised by its function.
      def replaced?
        return true unless Trap.function(@signal) == @function

        current = Signal.trap(@signal, @handler)
        return false if current.equal?(@handler)

        Signal.trap(@signal, current)
        true
      end
    end
    private_constant :Trap

    private

    def handle(signal, action)
      return @traps[signal] = Trap.new(signal) { request_all(signal) } unless Trap.foreign?(signal)

      StderrLogger.warn("#{signal} has a handler in C, which could not be restored: it is left alone, and does not " \
                        "#{action}. Use another signal, or `memprofiler dump SOCKET`")
    end

    def watch
      @watch.start
      RunningFlushers.add_sink(self)
    end

    def unwatch
      RunningFlushers.remove_sink(self)
      @watch.stop
    end

    def look_for_replaced
      @traps.values.select(&:newly_replaced?).each do |trap|
        actions = @signals.filter_map { |action, signal| action if signal == trap.signal }
        StderrLogger.warn("another handler has replaced that of #{trap.signal}: unless it calls the previous one, " \
                          "the signal does not #{actions.join(" or ")}. Use another one, or `memprofiler dump SOCKET`")
      end
    end

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
