# frozen_string_literal: true

require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # Does things at signals. A signal handler may take no lock, so that a thread of its own does what is asked for.
  #
  # A handler that is there before is called as well; one that the program installs later takes the place of this one.
  # @api private
  class SignalActions
    # How many signals can wait for those before them; further ones are ignored.
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

    # From now on does `action` at `signal`, instead of at the one that was given before.
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

      # Puts back what was there, unless another handler has taken the place of this one; that may go on calling it.
      # @return [void]
      def remove
        @work = nil
        # Only replacing a handler tells which one it is.
        current = Signal.trap(@signal, @handler)
        Signal.trap(@signal, current.equal?(@handler) ? @previous : current)
      end
    end
    private_constant :Trap

    private

    def request_all(signal)
      @signals.each { |action, other| request(action) if other == signal }
    end

    # In a signal handler.
    def request(action)
      # After a fork the threads are another process's.
      @threads = @threads.select(&:alive?)
      return if @threads.size >= LIMIT

      profiler = MemprofilerPprof
      thread = profiler.without_profiling { Thread.new { profiler.without_profiling { perform(action) } } }
      thread.name = "memprofiler #{action}"
      @threads += [thread]
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
