# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/top"
require "ruby_memprofiler_pprof/cli/top/directory"

module MemprofilerPprof
  class CLI
    # Who can be asked something: the processes at addresses, or files. A subclass says which files can.
    class Sources
      # @param address [String]
      # @return [Boolean] whether a process can be asked there, rather than a file be read
      def self.live?(address)
        address.b.match?(Source::URL) || File.socket?(address) || !ByPid::Subject.pid(address).nil?
      end

      # @param addresses [String, Array<String>] sockets, directories or patterns of sockets or files, URLs, or files
      # @param headers [Hash{String => String}] for an endpoint
      # @yieldparam file [String]
      # @yieldreturn [Profile] what is in it
      def initialize(addresses, headers, &load)
        @addresses = [*addresses]
        @headers = headers
        @load = load
      end

      private

      # Asks one after the other.
      #
      # @yieldparam address [String]
      # @return [Array] a Hash with what the block returned by address, and notes on who has not answered
      # @raise [Failure] if nobody has
      def collect
        problems = {}
        answers = @addresses.flat_map { |address| expand(address) }.uniq.to_h do |address|
          [address, yield(address)]
        rescue Source::Unavailable => e
          problems[address] = e.message
          [address, nil]
        end.compact
        raise Failure, problems.map { |pair| pair.join(": ") }.join("; ") if answers.empty?

        code = MemprofilerPprof::Report::Codes::NO_ANSWER
        [answers, problems.map { |pair| MemprofilerPprof::Report::Note.new(code, pair.join(": ")) }]
      end

      def expand(address)
        return [address] unless Top::Directory.address?(address)

        sockets = Top::Directory.new(address).sockets.sort
        sockets.empty? ? [newest(address)] : sockets
      end

      def newest(address)
        found = files(address).select { |file| recording?(file) }
        choose(found) ||
          raise(Failure, "#{address}: no process listens on a socket there, and there is no #{recordings}")
      end

      # @param found [Array<String>] files in a directory
      # @return [String, nil] which of them stands for it
      def choose(found)
        Inputs.newest(found)
      end

      def files(address)
        # The name of an existing directory is taken literally, even if it contains wildcards.
        return Dir.glob(address) unless File.directory?(address)

        CLI.paths(address, Dir.glob("*", base: address))
      end

      # @param file [String]
      # @param error [ProfileError]
      # @raise [Failure] which names the file
      def reject(file, error)
        raise Failure, error.message.start_with?(file) ? error.message : "#{file}: #{error.message}"
      end
    end
  end
end
