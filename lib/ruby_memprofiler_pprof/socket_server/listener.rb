# frozen_string_literal: true

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

      # @return [String]
      attr_reader :path

      # Takes the place of a socket to which nobody listens, and of nothing else.
      #
      # @param path [String]
      # @raise [SystemCallError] if there is another file, somebody listens there, or it cannot be made
      # @raise [ArgumentError] if the path is too long for a socket, which is about 100 bytes
      def initialize(path)
        @path = path
        @socket = Socket.new(:UNIX, :STREAM)
        bind(Socket.sockaddr_un(path))
        @identity = identity
        # Nobody can connect before the next line.
        File.chmod(MODE, path)
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
      def close
        @socket&.close
      end

      # Closes the socket and removes its file, if it is still this one's.
      # @return [void]
      def remove
        close
        File.unlink(path) if @identity && identity == @identity
      rescue SystemCallError
        # It is gone, or the directory is.
        nil
      end

      private

      def bind(address)
        @socket.bind(address)
      rescue Errno::EADDRINUSE
        raise Errno::EEXIST, path unless File.lstat(path).socket?
        raise unless abandoned?(address)

        # A process that does the same at this moment may have its new socket removed, and goes on without.
        File.unlink(path)
        @socket.bind(address)
      end

      # A socket of another type finds out without disturbing whoever listens, nor waiting for them.
      def abandoned?(address)
        probe = Socket.new(:UNIX, :DGRAM)
        probe.connect(address)
        false
      rescue Errno::ECONNREFUSED
        true
      rescue SystemCallError
        # EPROTOTYPE: there is one.
        false
      ensure
        probe&.close
      end

      def identity
        File.lstat(path).then { |stat| [stat.dev, stat.ino] }
      end
    end
  end
end
