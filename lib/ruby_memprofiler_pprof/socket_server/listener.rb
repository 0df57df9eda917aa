# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"
# Not "socket", which requires io/wait on some Rubies, a default gem: see StderrLogger.
require "socket.so"

module MemprofilerPprof
  class SocketServer
    # A listening Unix socket to which only its owner can connect, and its file.
    # @api private
    class Listener
      MODE = 0o600
      BACKLOG = 32
      private_constant :MODE, :BACKLOG

      # Whether no process listens. Connecting a datagram socket shows it without a connection that the listener would
      # have to accept: it fails either way, but with different errors.
      # @param path [String] of a socket
      # @return [Boolean]
      def self.abandoned?(path)
        probe = Socket.new(:UNIX, :DGRAM)
        probe.connect(Socket.sockaddr_un(path))
        false
      rescue Errno::ECONNREFUSED
        true
      rescue SystemCallError
        # EPROTOTYPE: a process listens, with a stream socket.
        false
      ensure
        probe&.close
      end

      # @return [String]
      attr_reader :path

      # Creates the directory if it is missing. Replaces a socket on which no process listens any more, but no other
      # file.
      #
      # @param path [String]
      # @raise [SystemCallError] if there is another file, a process listens there, or it cannot be made
      # @raise [ArgumentError] if the path is too long for a socket, which is about 100 bytes
      def initialize(path)
        @path = path
        @socket = Socket.new(:UNIX, :STREAM)
        restrict
        bind(Socket.sockaddr_un(path))
        stat = File.lstat(path)
        @identity = identity(stat)
        # No client can connect before listen is called, so none can while anybody may.
        File.chmod(MODE, path) unless stat.mode & 0o777 == MODE
        @socket.listen(BACKLOG)
      rescue SystemCallError, ArgumentError
        remove
        raise
      end

      # @return [Socket] of the next client
      def accept
        @socket.accept.first
      end

      # @return [void]
      # @raise [SystemCallError] if the program has closed it itself
      def close
        @socket&.close
      end

      # Closes the socket and removes its file, if it is still this one's.
      # @return [void]
      def remove
        close
      rescue SystemCallError
        nil
      ensure
        remove_file
      end

      private

      # On Linux, the file that bind makes has the socket's own mode. Setting it does not give the GVL away, as
      # File.chmod does, which costs 100 ms beside a thread that computes.
      def restrict
        File.for_fd(@socket.fileno, autoclose: false).chmod(MODE)
      rescue SystemCallError
        # Elsewhere.
        nil
      end

      def bind(address)
        @socket.bind(address)
      rescue Errno::ENOENT
        AtomicFile.make_directory_of(path)
        @socket.bind(address)
      rescue Errno::EADDRINUSE
        raise Errno::EEXIST, path unless File.lstat(path).socket?
        raise unless Listener.abandoned?(path)

        # If another process does the same at this moment, this may remove its new socket; that process then has none.
        File.unlink(path)
        @socket.bind(address)
      end

      def remove_file
        File.unlink(path) if @identity && identity == @identity
      rescue SystemCallError
        # The file or its directory does not exist any more.
        nil
      end

      def identity(stat = File.lstat(path))
        [stat.dev, stat.ino]
      end
    end
  end
end
