# frozen_string_literal: true

# Not "socket", which requires io/wait on some Rubies, a default gem: see StderrLogger.
require "socket.so"

module MemprofilerPprof
  # Writing to a socket whose other side has hung up sends SIGPIPE. Ruby ignores that, but a program can have
  # `trap("PIPE", "SYSTEM_DEFAULT")`, and would end because of the profiler.
  # @api private
  module Sigpipe
    # The flag of BasicSocket#send with which none is sent. macOS has no such flag.
    NONE = Socket.const_defined?(:MSG_NOSIGNAL) ? Socket::MSG_NOSIGNAL : 0

    # For a socket that others write to, as Net::HTTP does.
    module Ignoring
      # @param bytes [String]
      # @return [Integer, Symbol] as IO#write_nonblock
      def write_nonblock(bytes, exception: true)
        sendmsg_nonblock(bytes, NONE, exception: exception)
      end
    end
  end
  private_constant :Sigpipe
end
