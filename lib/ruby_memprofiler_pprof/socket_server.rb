# frozen_string_literal: true

require "ruby_memprofiler_pprof/background_thread"
require "ruby_memprofiler_pprof/file_pattern"
require "ruby_memprofiler_pprof/running_flushers"
require "ruby_memprofiler_pprof/socket_server/exchange"
require "ruby_memprofiler_pprof/socket_server/listener"

module MemprofilerPprof
  # Serves profiles of this process through a Unix socket, for `memprofiler top` and `curl --unix-socket`.
  # What it serves is still in the profiles of flushers of the same collector.
  #
  # It lives as long as the process. A forked child has its own socket if the name contains the pid. Otherwise it takes
  # over the name if its parent exits within half a minute, as that of a daemon does.
  # @api private
  class SocketServer
    # How many clients are served at a time: each may need a reader of the collector, of which seven can be open. Two
    # are for the endpoint's requests, one is for delta_heap, and one for leaks.
    MAX_CLIENTS = 3
    # How often a forked child tries to take over the name of its parent's socket: a daemon's parents may have to write
    # their last profiles first. And how often a process tries to open a socket again that the program has closed.
    TRIES = 30
    # Seconds before each of these tries, and after which a failed accept is tried again.
    PAUSE = 1
    # Seconds to wait for a killed thread to end: Ruby loses a kill that reaches a thread in a finalizer.
    JOIN_TIMEOUT = 2
    private_constant :MAX_CLIENTS, :TRIES, :PAUSE, :JOIN_TIMEOUT

    # @param profiler [DefaultProfiler]
    # @param path [FilePattern]
    # @param logger [#error, #warn, #info]
    def initialize(profiler, path, logger:)
      @profiler = profiler
      @path = path
      @logger = logger
      @flushing = Mutex.new
      @rested_at = 0
      reset
    end

    # @return [String] the name of the socket's file, as it was given
    def pattern
      @path.to_s
    end

    # @return [String, nil] why the socket could not be opened
    attr_reader :problem

    # Opens the socket. If that fails, it is logged and the program runs without a socket.
    # @return [self]
    def start
      remove_abandoned
      # In one piece: who is killed in between would leave a file that nobody removes.
      Thread.handle_interrupt(Object => :never) do
        listener = @listener = Listener.new(@path.expand)
        @thread = thread { serve_always(listener) }
      end
      RunningFlushers.add_sink(self)
      self
    rescue SystemCallError, ArgumentError, ThreadError => e
      # Ruby's own message may name the file once more, at its end.
      @problem = "#{@path.expand}: #{e.message}"
      @logger.error("MemprofilerPprof: no socket #{@problem}")
      self
    end

    # Closes the socket, removes its file and disconnects all clients.
    # @return [void]
    def stop
      RunningFlushers.remove_sink(self)
      threads = [@thread, *@clients.keys].compact.each(&:kill)
      listener = @listener
      # First, so that a thread that could not be killed does not open the socket again.
      @listener = nil
      listener&.remove
      threads.each { |thread| BackgroundThread.ended?(thread, JOIN_TIMEOUT) }
      reset
    end

    # @return [String, nil] the socket's file, if it is open
    def path
      @listener&.path
    end

    # @return [Hash{Integer => String}] this user's sockets by this name on which a process listens, this one's too, by
    #   process id; empty if the name has no `%{pid}`
    def siblings
      @path.files_by_pid.select { |_, path| own?(path) && !Listener.abandoned?(path) }
    end

    # Called in a forked child, which has the sockets of its parent, but none of its threads.
    def after_fork
      # Perhaps from its parent's parent: a daemon is forked twice.
      @inherited = @listener.path if @listener
      [@listener, *@clients.values].compact.each { |socket| close(socket) }
      reset
      pause = @path.expand == @inherited
      @thread = thread { take_over(pause: pause)&.then { |listener| serve_always(listener) } }
    rescue ThreadError => e
      @logger.error("MemprofilerPprof: no socket in the forked process: #{e.message}")
    end

    # Called when the process exits.
    def finish
      stop
    end

    private

    # The program may have closed it itself, as those do that become daemons.
    def close(socket)
      socket.close
    rescue SystemCallError
      nil
    end

    # Forgets all threads and sockets.
    def reset
      @thread = @listener = nil
      @clients = {}
      @places = SizedQueue.new(MAX_CLIENTS)
    end

    # @return [Listener, nil] nil if the socket cannot be opened: the parent may be running still, and listen
    def take_over(pause:)
      tries = TRIES
      begin
        sleep(PAUSE) if pause
        remove_abandoned
        @listener = Listener.new(@path.expand)
      rescue SystemCallError, IOError
        pause = true
        retry if (tries -= 1).positive?
      end
    end

    # Opens the socket again if the program closes it, as those do that become daemons. Some do so only after the fork.
    def serve_always(listener)
      loop do
        accept(listener)
        # The socket was closed: by #stop?
        return unless @listener.equal?(listener)

        listener = take_over(pause: true)
        return @logger.error("MemprofilerPprof: no socket any more: the program has closed it") unless listener
      end
    end

    # While there are too many clients, further ones wait to be accepted. One for which there is no thread is
    # disconnected. The queue is a local: a thread that outlives #stop must not free a place of a later start.
    # Returns when the socket was closed.
    def accept(listener)
      places = @places
      loop do
        places.push(true)
        client = listener.accept
        @clients.keep_if { |thread, _| thread.alive? }
        @clients[thread { serve(client, places) }] = client
      rescue IOError, Errno::EBADF
        places.pop
        return
      rescue SystemCallError, ThreadError
        client&.close
        places.pop
        sleep(PAUSE)
      end
    end

    def serve(client, places)
      Exchange.new(client).call { |request, wait| answer(request, wait) }
    rescue StandardError, ScriptError, NoMemoryError => e
      @logger.error("MemprofilerPprof: a profile was not served: #{e.class}: #{e.message} (#{e.backtrace&.first})")
    ensure
      client.close
      places.pop
    end

    def answer(request, wait)
      raise Error, "The profiler does not run in process #{Process.pid}." unless @profiler.running?

      @profiler.on_demand.answer(request, @profiler.collector, wait: wait, turn: method(:rested),
                                                               **@profiler.config.flush_options)
    end

    # Those of processes that have ended without the exit blocks of Ruby, as Resque's children do. The names of others
    # have other process ids, so nobody else would replace them.
    def remove_abandoned
      @path.files_by_pid.each_value do |path|
        File.unlink(path) if own?(path) && Listener.abandoned?(path)
      rescue SystemCallError
        # Another process has removed it.
        nil
      end
    end

    def own?(path)
      File.lstat(path).then { |stat| stat.socket? && stat.owned? }
    rescue SystemCallError
      # It was removed meanwhile.
      false
    end

    # Calls the block: one at a time, and at most half of the time.
    def rested
      @flushing.synchronize do
        sleep([@rested_at - now, 0].max)
        began = now
        profile = yield
        @rested_at = now + (now - began)
        profile
      end
    end

    def thread(&)
      BackgroundThread.start("ruby_memprofiler_pprof socket", &)
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
