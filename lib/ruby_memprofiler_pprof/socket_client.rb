# frozen_string_literal: true

require "ruby_memprofiler_pprof/sigpipe"
require "socket"

module MemprofilerPprof
  # Asks another process through its socket, in the little of HTTP that {SocketServer} speaks.
  # @api private
  class SocketClient
    # There is no answer, or only part of one. The message says why.
    class NoAnswer < StandardError; end

    # How many bytes an answer may have.
    MOST_BYTES = 67_108_864
    CHUNK = 65_536
    LINUX = RUBY_PLATFORM.include?("linux")
    private_constant :MOST_BYTES, :CHUNK, :LINUX

    # @param path [String] of the socket
    # @param pid [Integer, nil] of the process that must listen there, on Linux: a file's name may lead elsewhere by now
    # @raise [ArgumentError] if the path is too long for one
    def initialize(path, pid: nil)
      @address = Socket.sockaddr_un(path)
      @pid = pid
    end

    # @param target [String] such as "/heap?seconds=1"
    # @param timeout [Numeric] how many seconds to wait for the whole answer
    # @return [Array(Integer, String)] status and body
    # @raise [NoAnswer]
    def get(target, timeout)
      head, body = exchange(target, timeout).split("\r\n\r\n", 2)
      whole = body && body.bytesize == head[/^Content-Length: (\d+)/, 1].to_i
      raise NoAnswer, "the process has hung up" unless whole

      [head.split[1].to_i, body]
    rescue SystemCallError => e
      # Only the system's own words: without the C function and the address, which is known.
      raise NoAnswer, SystemCallError.new(nil, e.errno).message
    end

    private

    def exchange(target, timeout)
      deadline = now + timeout
      socket = Socket.new(:UNIX, :STREAM)
      # Fails rather than waits if too many others do.
      socket.connect_nonblock(@address)
      check_listener(socket) if LINUX
      socket.sendmsg_nonblock("GET #{target} HTTP/1.0\r\n\r\n", Sigpipe::NONE)
      read(socket) { socket.wait_readable([deadline - now, 0].max) || overdue(timeout) }
    ensure
      socket&.close
    end

    def check_listener(socket)
      listener, = socket.getsockopt(:SOCKET, :PEERCRED).unpack("i")
      raise NoAnswer, "process #{listener} listens there, not process #{@pid}" unless [nil, listener].include?(@pid)
      raise NoAnswer, "process #{listener} is stopped: kill -CONT #{listener} first" if stopped?(listener)
    end

    # Such a process would be waited for in vain.
    def stopped?(pid)
      File.binread("/proc/#{pid}/status").match?(/^State:\s*T/)
    rescue SystemCallError
      # It has ended, or cannot be seen from here.
      false
    end

    # Calls the block where there is nothing to read yet.
    def read(socket)
      answer = "".b
      while (chunk = socket.read_nonblock(CHUNK, exception: false))
        next yield if chunk == :wait_readable

        answer << chunk
        raise NoAnswer, "the answer has more than #{MOST_BYTES} bytes" if answer.bytesize > MOST_BYTES
      end
      answer
    end

    def overdue(timeout)
      raise NoAnswer, "no answer within #{timeout} s"
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
