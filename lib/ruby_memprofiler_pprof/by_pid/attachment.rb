# frozen_string_literal: true

require "json"
require "ruby_memprofiler_pprof/by_pid"
require "ruby_memprofiler_pprof/by_pid/exchange"
require "ruby_memprofiler_pprof/by_pid/limits"
require "ruby_memprofiler_pprof/by_pid/payload"
require "ruby_memprofiler_pprof/by_pid/subject"
require "ruby_memprofiler_pprof/report/site_text"
require "ruby_memprofiler_pprof/version"

module MemprofilerPprof
  module ByPid
    # The profiler in another process that was started without it.
    # @api private
    class Attachment
      # How the setting `socket` is called in the environment.
      SOCKET = "RUBY_MEMPROFILER_PPROF_SOCKET"
      EXTENSION = "ruby_memprofiler_pprof.so"
      # Seconds within which a process has to be at a point where it could run a signal's handler.
      TIMEOUT = 30
      # The tool's exit statuses after which the process does not look for the file any more.
      OVER = [0, 2].freeze
      private_constant :EXTENSION, :OVER

      # What came of it.
      #
      # @!attribute pauses
      #   @return [Array<Float>] for how many seconds its main thread was stopped, each time
      # @!attribute reached
      #   @return [Float] seconds until it was at such a point
      # @!attribute loaded
      #   @return [Float] seconds until it was done
      # @!attribute socket
      #   @return [String, nil] the profiler's socket, for the process
      Outcome = Struct.new(:pauses, :reached, :loaded, :socket)

      # @param pid [Integer]
      # @param timeout [Integer] in seconds
      def initialize(pid, timeout: TIMEOUT)
        @subject = Subject.new(pid)
        @timeout = timeout
      end

      # @return [String, nil] where the process's profiler is asked
      def socket
        @subject.socket.tap { |path| @present = !path.nil? }
      end

      # @param path [String] as the process sees it
      # @return [String] where that is for this one
      def outside(path)
        @subject.outside(path)
      end

      # @return [Integer] the process's id
      def pid
        @subject.pid
      end

      # @return [String, nil] what has become of a process that had the profiler, and cannot have it any more
      def fate
        return "has ended" if @subject.ended?

        # By `exec`, which leaves only its id.
        "has become another program" if @present && !@subject.maps?(EXTENSION)
      rescue Error
        # It has ended just now, or is none of ours any more.
        @subject.ended? ? "has ended" : "has become another program"
      end

      # Starts the profiler.
      # @param variables [Hash{String => String}] settings, as in the environment
      # @return [Outcome]
      # @raise [Error]
      def start(variables)
        check_name(variables[SOCKET])
        version = ByPid.run("check", pid).chomp
        raise Error, "process #{pid} has the profiler already: memprofiler top #{pid}" if socket

        limits.check
        extension = extension(version)
        deliver(extension) { |parent| [:start, { SOCKET => "#{parent}/memprofiler-%{pid}.sock", **variables }] }
          .tap { @present = true }
      end

      # Stops it.
      # @return [Outcome]
      # @raise [Error]
      def stop
        ByPid.run("check", pid)
        raise Error, "process #{pid} does not have the profiler" unless @subject.maps?(EXTENSION)

        deliver(nil) { [:stop] }
      end

      private

      def limits
        Limits.new(@subject)
      end

      def check_name(socket)
        return if socket.nil? || File.basename(socket).match?(Subject::NAME)

        raise Error, "#{socket} would not be found by the PID: the socket's name must contain memprof or " \
                     "begin with mem-"
      end

      # @param extension [String, nil] nil if it has been there before
      def deliver(extension)
        Exchange.open(@subject) do |exchange|
          order = { pid: @subject.own_pid, answer: exchange.path("answer"), call: yield(exchange.parent) }
          order.merge!(extension: extension, **sources(exchange)) if extension
          file = exchange.write("attach.rb", Payload.code(order))
          figures = JSON.parse(load(file, exchange))
          Outcome.new(figures["pauses_us"].map { |pause| pause / 1e6 }, figures["reached_ms"] / 1e3,
                      figures["loaded_ms"] / 1e3, value(exchange))
        end
      end

      # Has the process load the file. However that ends, the exchange knows whether it is over.
      # @return [String]
      def load(file, exchange)
        exchange.promise
        tool = nil
        ByPid.run("require", pid, file, @timeout) { |running| tool = running }
      rescue Error, SystemCallError
        # It has not begun. After an exception from outside, it may have, even if there is no sign of it.
        exchange.settle if tool.nil?
        raise
      ensure
        exchange.settle if tool && OVER.include?(tool.value.exitstatus)
      end

      # @return [Hash{Symbol => Object}] the file with all texts, and how many bytes each has
      def sources(exchange)
        texts = Payload.sources
        { sources: exchange.write("sources", texts.values.join), files: texts.transform_values(&:bytesize) }
      end

      # What the process's side has returned.
      def value(exchange)
        answer = exchange.answer("answer")
        raise Error, "process #{pid}: #{answer ? Report::SiteText.printable(answer) : no_answer(exchange)}" unless
          answer&.start_with?("ok ")

        answer.delete_prefix("ok ").then { |text| text unless text.empty? }
      end

      def no_answer(exchange)
        return "it has ended" if @subject.ended?
        return "it has no free file descriptor, and so could not read what it was to load" if
          limits.descriptors&.zero?

        "it wrote no answer: if it is in a sandbox, it may not be allowed to read and write in #{exchange.parent}"
      end

      # @param version [String] of the process's Ruby
      # @return [String] the library for it, as the process sees it
      def extension(version)
        minor = version[/\A\d+\.\d+/]
        precompiled = File.join(Payload::LIBRARY, "ruby_memprofiler_pprof", minor, EXTENSION)
        file = File.exist?(precompiled) ? precompiled : compiled(minor, version)
        inside = @subject.file(file)
        return file if File.identical?(file, inside) || copy?(inside, file)

        raise Error, "process #{pid} cannot see #{file}, as it has its own file system: run this in its container, " \
                     "with this version of the gem installed there"
      end

      # What the process has in the library's place may be anything, such as a pipe, which would be waited for.
      def copy?(inside, file)
        File.open(inside, "rb", flags: File::NONBLOCK) do |other|
          other.stat.file? && other.size == File.size(file) && other.read(other.size) == File.binread(file)
        end
      rescue SystemCallError
        # There is no such file.
        false
      end

      def compiled(minor, version)
        unless RUBY_VERSION.start_with?("#{minor}.")
          raise Error, "this gem is compiled for Ruby #{RUBY_VERSION}, and process #{pid} runs #{version}: " \
                       "run memprofiler with that Ruby"
        end

        $LOADED_FEATURES.find { |path| path.end_with?("/ruby_memprofiler_pprof/#{EXTENSION}") }
      end
    end
  end
end
