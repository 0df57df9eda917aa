# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/source"
require "ruby_memprofiler_pprof/socket_server/listener"

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # All processes whose sockets are in a directory, or match a pattern.
      class Directory
        # Seconds that processes may take to answer, beyond the interval, before the others are shown without them.
        PATIENCE = 2
        private_constant :PATIENCE

        # @param address [String]
        # @return [Boolean] whether it stands for several sockets
        def self.address?(address)
          return true if File.directory?(address)

          address.match?(/[*?\[{]/) && !address.match?(Source::URL) && !File.exist?(address)
        end

        # @param address [String] a directory, or a pattern for Dir.glob; `%{pid}` and the like are wildcards, too
        def initialize(address)
          @pattern = File.directory?(address) ? nil : address.gsub(/%[{<]\w+[}>]/, "*")
          @address = address
          @pending = {}
        end

        # @param seconds [Integer] over which to count allocations
        # @param chosen [String, nil] the only socket to ask; nil asks all
        # @return [Hash{String => Profile, Source::Unavailable}] what came of each socket, or why nothing did
        # @raise [Source::Unavailable] if there is no process
        def fetch(seconds, chosen = nil)
          paths = chosen ? [chosen] : sockets
          raise Source::Unavailable, "no process listens on a socket there" if paths.empty?

          @pending.keep_if { |path, _| paths.include?(path) }
          paths.each { |path| @pending[path] ||= Thread.new { get(path, seconds) } }
          deadline = now + seconds + PATIENCE
          paths.to_h { |path| [path, collect(path, deadline)] }
        end

        # @return [Array<String>] those of profilers on which a process listens
        def sockets
          paths = @pattern ? Dir.glob(@pattern) : CLI.paths(@address, Dir.children(@address))
          paths.select { |path| private?(path) && !SocketServer::Listener.abandoned?(path) }
        rescue SystemCallError
          []
        end

        private

        # A socket to which others may connect is no profiler's, but a web server's, say. It would take what it is asked
        # for a request of its own.
        def private?(path)
          stat = File.stat(path)
          stat.socket? && (stat.mode & 0o077).zero?
        rescue SystemCallError
          false
        end

        def get(path, seconds)
          UnixSocket.new(path).fetch(seconds)
        rescue Source::Unavailable => e
          e
        end

        # A thread that is not done goes on, and its answer comes with one of the next.
        def collect(path, deadline)
          return Source::Unavailable.new("no answer yet") unless @pending[path].join([deadline - now, 0].max)

          @pending.delete(path).value
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
