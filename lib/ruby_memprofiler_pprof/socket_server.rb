# frozen_string_literal: true

require "ruby_memprofiler_pprof/file_pattern"
require "ruby_memprofiler_pprof/running_flushers"
require "ruby_memprofiler_pprof/socket_server/exchange"
require "ruby_memprofiler_pprof/socket_server/listener"

module MemprofilerPprof
  # Serves profiles of this process through a Unix socket, for `ruby_memprofiler_pprof top` and `curl --unix-socket`.
  # Flushers of the same collector miss nothing by that.
  #
  # It lives as long as the process. A forked child has a socket of its own if the name has its pid in it; else it takes
  # the name over if the parent is gone a moment later, as that of a daemon is.
  # @api private
  class SocketServer
    # How many clients are served at a time: each may take a reader of the collector, which has seven to give.
    MAX_CLIENTS = 4
    # Seconds that a forked child gives its parent to be gone, and that pass before a failing accept is tried again.
    PAUSE = 1
    # Seconds that a killed thread is waited for: Ruby forgets a kill that meets a thread in a finalizer.
    PATIENCE = 2
    private_constant :MAX_CLIENTS, :PAUSE, :PATIENCE

    # @return [String] the name of the socket's file, as it was given
    attr_reader :pattern

    # @param profiler [DefaultProfiler]
    # @param pattern [String]
    # @param logger [#error, #warn, #info]
    def initialize(profiler, pattern, logger:)
      @profiler = profiler
      @pattern = pattern
      @path = FilePattern.new(pattern)
      @logger = logger
      @flushing = Mutex.new
      @rested_at = 0
      begin_anew
    end

    # Opens the socket. Failing to do so is logged, and the program goes on without.
    # @return [self]
    def start
      open
      RunningFlushers.add_sink(self)
      self
    rescue SystemCallError, ArgumentError, ThreadError => e
      # Ruby's message ends with the name, if it is about a file.
      @logger.error("MemprofilerPprof: no socket #{@path.expand}: #{e.message}")
      self
    end

    # Closes the socket, removes its file and sends all clients away.
    # @return [void]
    def stop
      RunningFlushers.remove_sink(self)
      threads = [@thread, *@clients.keys].compact.each(&:kill)
      @listener&.remove
      threads.each { |thread| thread.join(PATIENCE) }
      begin_anew
    end

    # In a forked child, which has the sockets of its parent, but none of its threads.
    def after_fork
      inherited = @listener&.path
      [@listener, *@clients.values].compact.each(&:close)
      begin_anew
      path = @path.expand
      @thread = thread { take_over(path, path == inherited ? PAUSE : 0) }
    rescue ThreadError => e
      @logger.error("MemprofilerPprof: no socket in the forked process: #{e.message}")
    end

    # At the process's exit.
    def finish
      stop
    end

    private

    # No threads and no sockets.
    def begin_anew
      @thread = @listener = nil
      @clients = {}
      @places = SizedQueue.new(MAX_CLIENTS)
    end

    def open
      @listener = Listener.new(@path.expand)
      @thread = thread { accept }
    end

    def take_over(path, patience)
      sleep(patience)
      @listener = Listener.new(path)
      accept
    rescue SystemCallError
      # The parent goes on.
      nil
    end

    # Where there are too many clients, others wait to be accepted. One that gets no thread is sent away.
    def accept
      loop do
        @places.push(true)
        client = @listener.accept
        @clients.keep_if { |thread, _| thread.alive? }
        @clients[thread { serve(client) }] = client
      rescue SystemCallError, ThreadError
        client&.close
        @places.pop
        sleep(PAUSE)
      end
    rescue IOError
      # The socket was closed.
      nil
    end

    def serve(client)
      Exchange.new(client).call { |seconds, wait| take(seconds, wait).pprof_data }
    rescue StandardError, ScriptError, NoMemoryError => e
      @logger.error("MemprofilerPprof: a profile was not served: #{e.class}: #{e.message} (#{e.backtrace&.first})")
    ensure
      client.close
      @places.pop
    end

    def take(seconds, wait)
      raise Error, "The profiler does not run in process #{Process.pid}." unless @profiler.running?

      collector = @profiler.collector
      return flush(collector, nil) unless seconds

      reader = collector.open_reader
      begin
        wait.call(seconds)
        flush(collector, reader)
      ensure
        collector.close_reader(reader)
      end
    end

    # One at a time, and at most half of the time. To look must not collect garbage, whatever files are to have.
    def flush(collector, reader)
      @flushing.synchronize do
        sleep([@rested_at - now, 0].max)
        began = now
        profile = collector.flush(**@profiler.config.flush_options, gc: false, reader: reader)
        @rested_at = now + (now - began)
        profile
      end
    end

    # What it allocates is not sampled.
    def thread(&work)
      profiler = MemprofilerPprof
      profiler.without_profiling do
        Thread.new { profiler.without_profiling { work.call } }.tap do |thread|
          thread.name = "ruby_memprofiler_pprof socket"
          # Puma warns of threads that a fork would lose; this one comes back.
          thread.thread_variable_set(:fork_safe, true)
        end
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
