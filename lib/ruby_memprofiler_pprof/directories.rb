# frozen_string_literal: true

module MemprofilerPprof
  # Directories that are made for files.
  # @api private
  module Directories
    class << self
      # Makes a directory, and parents that are missing.
      # @param path [String]
      # @param mode [Integer] of the directory. Parents may have other uses, so their mode is left to the umask
      # @return [void]
      # @raise [SystemCallError] when it cannot be made
      def make(path, mode = 0o777)
        return if File.directory?(path)

        parent = File.dirname(path)
        make(parent) unless parent == path
        Dir.mkdir(path, mode)
        give(path, File.stat(parent)) if Process.euid.zero?
      rescue Errno::EEXIST
        # Another thread or process has just made it, or there is a file of this name.
        raise unless File.directory?(path)
      end

      # @param path [String]
      # @return [String] the directory itself or, if it is still to be made, the innermost one around it that exists
      def existing(path)
        path = File.dirname(path) until File.exist?(path)
        path
      end

      private

      # What root makes in a user's directory, as by `sudo memprofiler record`, is the user's: the program must be able
      # to write its own profiles there.
      def give(path, parent)
        File.lchown(parent.uid, parent.gid, path) unless parent.uid.zero?
      rescue SystemCallError
        # In a container root may be no more than a name.
        nil
      end
    end
  end
end
