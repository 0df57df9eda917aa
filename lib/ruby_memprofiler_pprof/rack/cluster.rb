# frozen_string_literal: true

require "ruby_memprofiler_pprof/background_thread"
require "ruby_memprofiler_pprof/rack/answers"
require "ruby_memprofiler_pprof/socket_client"

module MemprofilerPprof
  module Rack
    # The processes that an {Endpoint} can answer for: its own and, by their sockets, the others with the same setting
    # `socket`. These are asked for their own profiles only, so that no request goes round.
    # @api private
    class Cluster
      # A single process cannot be asked, or has refused. The message says why.
      class Refusal < StandardError
        # @return [Integer] the response's
        attr_reader :status

        def initialize(status, message)
          super(message)
          @status = status
        end
      end

      # How many seconds a process may take to answer, beyond those that its answer covers.
      TIMEOUT = 15

      # @param sockets [Hash{Integer => String}] see {DefaultProfiler#siblings}
      def initialize(sockets)
        @sockets = sockets
      end

      # @return [Array<Integer>] the ids of all processes
      def pids
        [Process.pid, *@sockets.keys].uniq.sort
      end

      # @param pid [Integer, Symbol] or :all
      # @return [void]
      # @raise [Refusal] if there is no such process
      def check(pid)
        return if pid == :all || pids.include?(pid)

        raise Refusal.new(404, "There is no process #{pid} here, only #{pids.join(", ")}.")
      end

      # Asks one process or all of them: at the same time, or who holds what one after the other.
      # @param pid [Integer, Symbol] or :all
      # @param request [OnDemand::Request]
      # @yieldreturn [String] this process's answer
      # @return [Answers] of one process at least
      # @raise [Refusal] if the only one asked has not answered
      def ask(pid, request, &own)
        check(pid)
        outcomes = outcomes(pid == :all ? pids : [pid], request, own)
        bodies, refusals = outcomes.partition { |_, outcome| outcome.is_a?(String) }.map(&:to_h)
        return Answers.new(bodies, refusals) if bodies.any?

        pid, refusal = refusals.first
        raise Refusal.new(refusal.status, "Process #{pid}: #{refusal.message}")
      end

      private

      # @return [Hash{Integer => String, Refusal}]
      def outcomes(pids, request, own)
        return one_by_one(pids, request, own) if request.name == "retainers"

        threads = (pids - [Process.pid]).to_h { |pid| [pid, start(@sockets.fetch(pid), request)] }
        outcomes = pids.include?(Process.pid) ? { Process.pid => own_answer(own) } : {}
        outcomes.merge(threads.transform_values(&:value)).sort.to_h
      ensure
        threads&.each_value(&:kill)
      end

      # At most one process at a time has a copy that needs memory.
      def one_by_one(pids, request, own)
        pids.to_h { |pid| [pid, pid == Process.pid ? own_answer(own) : fetch(@sockets.fetch(pid), request)] }
      end

      def own_answer(own)
        own.call
      rescue Error => e
        Refusal.new(503, "#{e.message} (#{e.class})")
      end

      def start(socket, request)
        BackgroundThread.start("ruby_memprofiler_pprof cluster") { fetch(socket, request) }
      end

      def fetch(socket, request)
        status, body = SocketClient.new(socket).get(request.target, request.duration + TIMEOUT)
        status == 200 ? body : Refusal.new(status, body.force_encoding(Encoding::UTF_8).scrub[/[^[:cntrl:]]*/])
      rescue SocketClient::NoAnswer => e
        Refusal.new(504, "#{e.message}.")
      end
    end
  end
end
