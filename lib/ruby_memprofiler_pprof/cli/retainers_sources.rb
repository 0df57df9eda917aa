# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/sources"
require "ruby_memprofiler_pprof/retainers_file"

module MemprofilerPprof
  class CLI
    # Who can be asked who holds what: processes, or files that recorded it.
    class RetainersSources < Sources
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

      # One process after the other, so that there is only one copy at a time.
      #
      # @param question [Hash{Symbol => Object}] keywords of {Collector#retainers}
      # @return [Found]
      # @raise [Failure] if nobody has answered
      def ask(**question)
        Found.new(*collect { |address| one(address, question) })
      end

      private

      def recording?(file)
        RetainersFile.name?(file)
      end

      def recordings
        "*#{RetainersFile::EXTENSION}"
      end

      def one(address, question)
        return Source.at(address, @headers).retainers(**question) if self.class.live?(address)

        [Retainers.of(@load.call(address), **question.slice(:site, :class_name, :limit))]
      rescue ProfileError => e
        reject(address, e)
      end
    end
  end
end
