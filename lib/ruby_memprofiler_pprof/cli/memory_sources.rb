# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/sources"
require "ruby_memprofiler_pprof/peak_file"
require "ruby_memprofiler_pprof/retainers_file"

module MemprofilerPprof
  class CLI
    # Who can be asked where the memory is: processes, or profiles.
    class MemorySources < Sources
      # @param full [Boolean] whether processes walk over their whole heaps
      # @return [Array] a Hash with an Array of {MemprofilerPprof::Memory} by address or name of the file, at least one;
      #   and notes on who has not answered
      # @raise [Failure] if nobody has
      def ask(full:)
        collect { |address| one(address, full) }
      end

      private

      def recording?(file)
        File.fnmatch?(Inputs::NAMES, File.basename(file), File::FNM_EXTGLOB) && !RetainersFile.name?(file) &&
          !PeakFile.name?(file)
      end

      # A profile that was written without Ruby, when memory ran short, does not say where that was.
      def choose(found)
        newest = Inputs.newest(found)
        return newest unless newest && !tells?(newest)

        choose(found - [newest]) || newest
      end

      def tells?(file)
        !MemprofilerPprof::Memory.of(@load.call(file)).nil?
      rescue ProfileError, Failure
        false
      end

      def recordings
        "profile"
      end

      def one(address, full)
        return Source.at(address, @headers).memory(full: full) if self.class.live?(address)

        memory = MemprofilerPprof::Memory.of(@load.call(address))
        raise ProfileError, "the profile does not say where the memory was" unless memory

        [memory]
      rescue ProfileError => e
        reject(address, e)
      end
    end
  end
end
