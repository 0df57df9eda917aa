# frozen_string_literal: true

require "net/http"
require "ruby_memprofiler_pprof/by_pid/subject"
require "ruby_memprofiler_pprof/socket_client"
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

      # @param address [String]
      # @param headers [Hash{String => String}] for an endpoint
      # @return [Source]
      # @raise [Unavailable] if it is a URL that is wrong, or a PID without the profiler
      # @raise [Failure] if it is a URL with a password, which is not to be shown again
      def self.at(address, headers)
        return Endpoint.new(address, headers) if address.match?(URL)

        pid = ByPid::Subject.pid(address)
        UnixSocket.new(pid ? socket_of(pid) : address, pid: pid)
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
      private_class_method :socket_of, :without_socket

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
      rescue Unavailable
        # Caught here, before the names of errors below load OpenSSL.
        raise
      rescue SocketClient::NoAnswer => e
        raise Unavailable, e.message
      rescue SystemCallError => e
        # Only the system's own words: without the C function and the address, which is known.
        raise Unavailable, SystemCallError.new(nil, e.errno).message
      rescue Timeout::Error, SocketError, IOError, OpenSSL::SSL::SSLError, Net::ProtocolError, Net::HTTPBadResponse,
             Net::HTTPHeaderSyntaxError, Zlib::Error => e
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

      # The body's first line, without control characters: it may be from any other server.
      def reason(status, body)
        "#{body.force_encoding(Encoding::UTF_8).scrub[/[^[:cntrl:]]*/]} (status #{status})".strip
      end
    end

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

    # A `Rack::Endpoint`.
    class Endpoint < Source
      def initialize(address, headers)
        super()
        # Not Unavailable, whose message would have the address before it.
        raise Failure, "give user and password by --header 'Authorization: …', not in a URL" if
          address.match?(%r{//[^/]*@})

        @uri = URI.parse(address)
        @headers = headers
        raise Unavailable, "the URL names no host" if @uri.hostname.to_s.empty?
      rescue URI::Error
        raise Unavailable, "not a valid URL"
      end

      private

      def misfit(*)
        "this is no profile; the URL must be that of the endpoint, such as http://127.0.0.1:3000/debug/pprof"
      end

      def get(target, timeout)
        options = { use_ssl: @uri.scheme.casecmp?("https"), open_timeout: 5, read_timeout: timeout }
        Net::HTTP.start(@uri.hostname, @uri.port, **options) do |http|
          response = http.get("#{@uri.path.chomp("/")}#{with_query(target)}", @headers)
          [response.code.to_i, response.code == "200" ? response.body : refusal(response)]
        end
      end

      # What the endpoint says itself is plain text.
      def refusal(response)
        return "it leads to #{response["location"]}" if response.is_a?(Net::HTTPRedirection)
        return response.body if response.content_type == "text/plain" && !response.body.to_s.empty?
        return "the server asks who you are, which --header can say" if %w[401 403].include?(response.code)

        misfit
      end

      # With the parameters that the address has, such as pid.
      def with_query(target)
        [target, *@uri.query].join(target.include?("?") ? "&" : "?")
      end
    end
  end
end
