# frozen_string_literal: true

require "ruby_memprofiler_pprof/retainers_file"

module MemprofilerPprof
  # The names of files with what was alive when a process had the most memory ({Collector#peak_profile}). There is one
  # for each series of profiles, beside the first of them.
  # @api private
  module PeakFile
    EXTENSION = ".peak.pprof"

    module_function

    # @param path [String] of a profile; it may have any bytes, as all names of files
    # @return [String]
    def beside(path)
      RetainersFile.beside(path, EXTENSION)
    end

    # @param path [String]
    # @return [Boolean] whether it has such a name
    def name?(path)
      path.b.end_with?(EXTENSION)
    end
  end
end
