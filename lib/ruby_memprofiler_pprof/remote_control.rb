# frozen_string_literal: true

require "ruby_memprofiler_pprof/signal_actions"

module MemprofilerPprof
  # By what others tell this process's profiler what to do: signals, and a Unix socket. All is called with a lock held.
  # @api private
  class RemoteControl
    # @return [Symbol, nil] what it listens to: :everywhere; :signals for no socket; or nil for neither
    attr_reader :listening

    # @param profiler [DefaultProfiler]
    # @param destinations [Destinations]
    def initialize(profiler, destinations)
      @profiler = profiler
      @destinations = destinations
      @signals = SignalActions.new { |action| action == :toggle ? profiler.toggle : profiler.dump }
      @listening = @server = nil
    end

    # Installs the signal handlers and opens the socket that are configured, or removes them.
    # @param where [Symbol, nil] as {#listening}
    # @param config [Configuration]
    # @return [void]
    def listen(where, config)
      @listening = where
      @signals.install(:dump, (config.dump_on if where))
      @signals.install(:toggle, (config.toggle_on if where))
      serve((config.socket if where == :everywhere))
    end

    # @return [String, nil] the file of this process's socket, if it is open
    def socket
      @server&.path
    end

    # @return [String, nil] why the socket could not be opened
    def socket_problem
      @server&.problem
    end

    # @return [Hash{Integer => String}] as {DefaultProfiler#siblings}
    def siblings
      @server&.siblings || {}
    end

    private

    # @param pattern [String, nil] of the socket's name; nil for none
    def serve(pattern)
      return if @server&.pattern == pattern

      # Loaded only here, since few programs need it.
      require "ruby_memprofiler_pprof/socket_server" if pattern
      server = (SocketServer.new(@profiler, @destinations.files(pattern), logger: @profiler.logger) if pattern)
      @server&.stop
      @server = server
      server&.start
    end
  end
end
