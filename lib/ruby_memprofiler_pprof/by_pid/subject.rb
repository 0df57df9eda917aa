# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid"

module MemprofilerPprof
  module ByPid
    # Another process, as /proc shows it.
    # @api private
    class Subject
      # What listening Unix sockets have in /proc/net/unix: SO_ACCEPTCON.
      LISTENING = "00010000"
      # How the profiler's sockets are called, in one way or another.
      NAME = /mem.*prof|\Amem[-_.]/i
      private_constant :LISTENING

      # @return [Integer] its id
      attr_reader :pid

      # @param text [String] of a command line
      # @return [Integer, nil] the id of a process; nil for anything else, as a file of that name
      def self.pid(text)
        Integer(text, 10) if text.match?(/\A[1-9]\d{0,9}\z/) && !File.exist?(text)
      end

      # @param pid [Integer]
      def initialize(pid)
        @pid = pid
      end

      # @return [Integer] its id, as itself sees it
      def own_pid
        Integer(field("NSpid").split.last || pid)
      end

      # @return [Array(Integer, Integer)] the user and the group that create its files
      def owner
        %w[Uid Gid].map { |name| Integer(field(name).split.last) }
      end

      # @param path [String] as the process sees it
      # @return [String] where that is for this one
      def file(path)
        "/proc/#{pid}/root#{path}"
      end

      # @return [String, nil] the profiler's socket, for this process
      # @raise [Error] if that cannot be known, or nobody would answer there
      def socket
        check_state
        listening.find { |name| File.basename(name).match?(NAME) }&.then { |path| outside(path) }
      end

      # @param path [String] as the process sees it
      # @return [String] as {#file}, but shorter where both see the same
      def outside(path)
        rooted = file(path)
        File.identical?(path, rooted) ? path : rooted
      end

      # @param name [String] the end of a file's name
      # @return [Boolean] whether it has such a library
      def maps?(name)
        lines = File.foreach("/proc/#{pid}/maps", chomp: true)
        # That it was deleted, or replaced, changes nothing.
        lines.any? { |line| line.delete_suffix(" (deleted)").end_with?(name) }
      rescue SystemCallError => e
        raise_error(e)
      end

      # @return [Array<Integer>] the numbers of its file descriptors
      # @raise [Error]
      def descriptors
        Dir.children("/proc/#{pid}/fd").map { |name| Integer(name) }
      rescue SystemCallError => e
        raise_error(e)
      end

      # @param name [String] of a file
      # @return [String] what /proc says of the process there
      # @raise [Error]
      def read(name)
        # The name of a program may be any bytes.
        File.binread("/proc/#{pid}/#{name}")
      rescue SystemCallError => e
        raise_error(e)
      end

      # @return [Boolean] whether there is no such process, or one that its parent has not waited for yet
      def ended?
        state.start_with?("Z", "X")
      rescue Error
        true
      end

      private

      # As `attach` says it.
      def check_state
        raise Error, "process #{pid} has ended" if state.start_with?("Z", "X")
        raise Error, "process #{pid} is stopped: kill -CONT #{pid} first" if state.start_with?("T")
      end

      def state
        field("State")
      end

      # @return [Array<String>] the names of the Unix sockets on which it listens
      def listening
        own = inodes
        # Their names may be any bytes.
        File.readlines("/proc/#{pid}/net/unix", chomp: true, mode: "rb").filter_map do |line|
          _, _, _, flags, _, _, inode, path = line.split(" ", 8)
          path if flags == LISTENING && path&.start_with?("/") && own.include?(inode)
        end
      rescue SystemCallError => e
        raise_error(e)
      end

      def inodes
        descriptors.filter_map do |number|
          File.readlink("/proc/#{pid}/fd/#{number}")[/\Asocket:\[(\d+)\]\z/, 1]
        rescue Errno::ENOENT
          # It was closed meanwhile.
          nil
        end
      end

      def field(name)
        read("status")[/^#{name}:\s*(.*)$/, 1].to_s
      end

      def raise_error(error)
        raise Error, "there is no process #{pid}" unless File.exist?("/proc/#{pid}")

        raise Error, "process #{pid}: #{SystemCallError.new(nil, error.errno).message}; use sudo, or run this in its " \
                     "container"
      end
    end
  end
end
