# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid/subject"
require "ruby_memprofiler_pprof/socket_client"

module MemprofilerPprof
  class CLI
    # `MemprofilerPprof.start(socket: PATH)`.
    class UnixSocket < Source
      # @param path [String]
      # @param pid [Integer, nil] of the process that must listen there
      def initialize(path, pid: nil)
        super()
        @path = path
        @pid = pid
      end

      private

      def get(target, timeout)
        SocketClient.new(@path, pid: @pid).get(target, timeout)
      rescue SocketClient::NoAnswer => e
        raise Unavailable, explain(e.cause) || e.message
      rescue ArgumentError => e
        # The path is too long for a socket.
        raise Unavailable, e.message
      end

      # @param error [SystemCallError, nil]
      # @return [String, nil] what it means here
      def explain(error)
        return without_file if error.is_a?(Errno::ENOENT)
        return "it is a directory, and dump takes the socket of one process" if File.directory?(@path)
        return "it is no socket; memprofiler report reads profiles" if File.file?(@path)

        without_listener if error.is_a?(Errno::ECONNREFUSED)
      end

      def without_listener
        # Any number may be part of the name.
        pid = [@pid, *File.basename(@path).scan(/\d+/).map(&:to_i)].compact.find { |number| profiled?(number) }
        return "nobody listens there, but process #{pid} runs: it has closed its socket; try again" if pid

        "nobody listens there: the process has ended"
      end

      def profiled?(pid)
        ByPid::Subject.new(pid).maps?("ruby_memprofiler_pprof.so")
      rescue ByPid::Error
        false
      end

      def without_file
        return "there is no socket; a URL begins with http://" if @path.b.match?(/\A[\w.-]+:\d+/)

        "there is no socket; does the program run with --socket?"
      end
    end
  end
end
