# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"

module MemprofilerPprof
  # The names of files that record who held the heap when the profile beside them was written.
  # @api private
  module RetainersFile
    # The comment by which a profile of references is known, whatever its file is called.
    COMMENT = "kind=retainers"
    EXTENSION = ".retainers.pprof"
    # Also with the number that {AtomicFile} puts before the extension.
    NAME = /\.retainers(?:#{AtomicFile::SEPARATOR}\d+)?\.pprof\z/

    module_function

    # @param path [String] of a profile; it may have any bytes, as all names of files
    # @param other [String] another extension
    # @return [String]
    def beside(path, other = EXTENSION)
      extension = File.basename(path.b)[AtomicFile::EXTENSION].to_s
      (path.b.delete_suffix(extension) << other).force_encoding(path.encoding)
    end

    # @param profile [Profile]
    # @return [Boolean] whether it is one of references
    def holds?(profile)
      profile.comments.include?(COMMENT)
    end

    # @param path [String]
    # @return [Boolean] whether it has such a name
    def name?(path)
      NAME.match?(path.b)
    end
  end
end
