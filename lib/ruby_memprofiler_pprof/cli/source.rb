# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid/subject"
require "stringio"

module MemprofilerPprof
  class CLI
    # Where profiles of a running process come from: its Unix socket, or the Rack endpoint.
    class Source
      # No profile could be fetched. The message says why.
      class Unavailable < StandardError; end

      # Seconds that a response may take, on top of the interval that it covers.
      ANSWER_TIMEOUT = 30
      # What the URL of an endpoint begins with.
      URL = %r{\Ahttps?://}i
      OWN_ERROR = /\A(.+) \(MemprofilerPprof::\w+\)\z/
      private_constant :OWN_ERROR

      # @param address [String]
      # @param headers [Hash{String => String}] for an endpoint
      # @return [Source]
      # @raise [Unavailable] if it is a URL that is wrong, or a PID without the profiler
      # @raise [Failure] if it is a URL with a password, which is not to be shown again
      def self.at(address, headers)
        return endpoint(address, headers) if address.match?(URL)

        pid = ByPid::Subject.pid(address)
        UnixSocket.new(pid ? socket_of(pid) : address, pid: pid)
      end

      def self.endpoint(address, headers)
        # Loaded only here, since net/http takes longer than to ask a socket.
        require "ruby_memprofiler_pprof/cli/source/endpoint"
        Endpoint.new(address, headers)
      end

      def self.socket_of(pid)
        subject = ByPid::Subject.new(pid)
        subject.socket or raise Unavailable, without_socket(subject)
      rescue ByPid::Error => e
        raise Unavailable, e.message
      end

      def self.without_socket(subject)
        pid = subject.pid
        return "the process does not have the profiler, or no socket of it: memprofiler attach #{pid}" unless
          subject.maps?("ruby_memprofiler_pprof.so")

        "process #{pid} has loaded this gem, but has no socket, or one whose name does not say so: give its path, " \
          "start it with --socket, or, if it does not profile itself, memprofiler attach #{pid}"
      end
      private_class_method :endpoint, :socket_of, :without_socket

      # @param seconds [Integer, nil] over which to count allocations; nil is since the collector's last flush
      # @return [Profile]
      # @raise [Unavailable]
      def fetch(seconds)
        parse(read(seconds))
      end

      # @param bytes [String] what {#read} returned
      # @return [Profile]
      # @raise [Unavailable]
      def parse(bytes)
        Profile.load(StringIO.new(bytes))
      rescue ProfileError => e
        raise Unavailable, misfit("no profile came: #{e.message.sub(/\A#<StringIO.*?>: /, "")}")
      end

      # @param seconds [Integer, nil] as for {#fetch}
      # @return [String] what should be a profile, as it came
      # @raise [Unavailable]
      def read(seconds)
        ask(OnDemand::Request.new(name: "heap", seconds: seconds))
      end

      # @param seconds [Integer] over which to sample CPU time
      # @return [Profile]
      # @raise [Unavailable]
      def cpu(seconds)
        parse(read_cpu(seconds))
      end

      # @param seconds [Integer] as for {#cpu}
      # @return [String] what should be a profile, as it came
      # @raise [Unavailable]
      def read_cpu(seconds)
        ask(OnDemand::Request.new(name: "profile", seconds: seconds))
      end

      # @param question [Hash{Symbol => Object}] keywords of {Collector#retainers}
      # @return [Array<Retainers>] one for each process for which the address stands; the profile of each is that of all
      # @raise [Unavailable]
      def retainers(**question)
        require "json"
        json, profile = parts(ask(OnDemand::Request.new(name: "retainers", format: :both, **question)))
        parse(profile)
        answers = [JSON.parse(json, symbolize_names: true)].flatten(1)
        raise Unavailable, misfit unless answers.all? { |answer| answer.is_a?(Hash) && answer[:sites] }

        answers.map { |answer| Retainers.new(answer, profile) }
      rescue JSON::ParserError
        raise Unavailable, misfit
      end

      # @param full [Boolean] whether the process walks over its whole heap
      # @return [Array<MemprofilerPprof::Memory>] one for each process for which the address stands
      # @raise [Unavailable]
      def memory(full:)
        body = ask(OnDemand::Request.new(name: "memory", format: :json, quick: !full))
        memories = MemprofilerPprof::Memory.parse(body.dup.force_encoding(Encoding::UTF_8))
        memories.empty? ? raise(Unavailable, misfit) : memories
      rescue ProfileError
        raise Unavailable, misfit
      end

      private

      # @param request [OnDemand::Request]
      # @return [String] the body of the answer
      def ask(request)
        status, body = get(request.target, request.duration + ANSWER_TIMEOUT)
        status == 200 ? body : raise(Unavailable, reason(status, body.to_s.dup))
      rescue SystemCallError => e
        # Only the system's own words: without the C function and the address, which is known.
        raise Unavailable, SystemCallError.new(nil, e.errno).message
      rescue IOError => e
        raise Unavailable, "#{e.message} (#{e.class})"
      end

      # @param text [String]
      # @return [String] what to say of an answer that is none
      def misfit(text = "no answer came")
        text
      end

      def parts(body)
        json, profile = OnDemand.split(body) if body.bytesize > 4
        [json.to_s.dup.force_encoding(Encoding::UTF_8), profile.to_s]
      end

      # The body's first line, without control characters: it may be from any other server. This gem's errors need no
      # status, nor their class.
      def reason(status, body)
        line = body.force_encoding(Encoding::UTF_8).scrub[/[^[:cntrl:]]*/]
        line[OWN_ERROR, 1] || "#{line} (status #{status})".strip
      end
    end
  end
end

require "ruby_memprofiler_pprof/cli/source/unix_socket"
