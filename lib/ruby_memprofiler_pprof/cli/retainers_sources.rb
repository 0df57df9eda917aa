# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/top"
require "ruby_memprofiler_pprof/cli/top/directory"
require "ruby_memprofiler_pprof/retainers"
require "ruby_memprofiler_pprof/retainers_file"

module MemprofilerPprof
  class CLI
    # Who can be asked who holds what: the processes at an address, or a file.
    class RetainersSources
      # What came of them.
      #
      # @!attribute answers
      #   @return [Hash{String => Array<Retainers>}] by address or name of the file; at least one
      # @!attribute notes
      #   @return [Array<MemprofilerPprof::Report::Note>] who has not answered, and why
      Found = Struct.new(:answers, :notes) do
        # @return [String] the paths of all, as pprof
        def profile
          profiles = answers.values.map { |all| all.first.pprof_data }
          return profiles.first if profiles.size == 1

          Profile.merge(profiles.lazy.map { |bytes| Profile.load(bytes) }).to_pprof
        end
      end

      # @param address [String]
      # @return [Boolean] whether a process can be asked there, rather than a file be read
      def self.live?(address)
        address.b.match?(Source::URL) || File.socket?(address)
      end

      # @param address [String] a socket, a directory or pattern of sockets or files, a URL, or a file
      # @param headers [Hash{String => String}] for an endpoint
      # @yieldparam file [String]
      # @yieldreturn [Profile] what is in it
      def initialize(address, headers, &load)
        @address = address
        @headers = headers
        @load = load
      end

      # One process after the other, so that there is only one copy at a time.
      #
      # @param question [Hash{Symbol => Object}] keywords of {Collector#retainers}
      # @return [Found]
      # @raise [Failure] if nobody has answered
      def ask(**question)
        problems = {}
        answers = addresses.to_h do |address|
          [address, one(address, question)]
        rescue Source::Unavailable => e
          problems[address] = e.message
          [address, nil]
        end.compact
        raise Failure, problems.map { |pair| pair.join(": ") }.join("; ") if answers.empty?

        code = MemprofilerPprof::Report::Codes::NO_ANSWER
        Found.new(answers, problems.map { |pair| MemprofilerPprof::Report::Note.new(code, pair.join(": ")) })
      end

      private

      def addresses
        return [@address] unless Top::Directory.address?(@address)

        sockets = Top::Directory.new(@address).sockets.sort
        sockets.empty? ? [newest_recording] : sockets
      end

      def files
        # The name of an existing directory is taken literally, even if it contains wildcards.
        return Dir.glob(@address) unless File.directory?(@address)

        Dir.glob("*", base: @address).map { |name| File.join(@address, name) }
      end

      def newest_recording
        recordings = files.select { |file| RetainersFile.name?(file) }
        recordings.max_by { |file| [File.mtime(file), file] } ||
          raise(Failure, "#{@address}: no process listens on a socket there, and there is no " \
                         "*#{RetainersFile::EXTENSION}")
      end

      def one(address, question)
        return Source.at(address, @headers).retainers(**question) if self.class.live?(address)

        [Retainers.of(@load.call(address), **question.slice(:site, :class_name, :limit))]
      rescue ProfileError => e
        raise Failure, e.message.start_with?(address) ? e.message : "#{address}: #{e.message}"
      end
    end
  end
end
