# frozen_string_literal: true

module MemprofilerPprof
  # Writes files so that nobody ever sees half of one under its name.
  # @api private
  module AtomicFile
    # O_EXCL and O_NOFOLLOW: where others may write, no file or link that they put there beforehand is used.
    FLAGS = File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW | File::BINARY
    # A profile tells the names of the program's classes and files: for its owner only.
    MODE = 0o600
    DIRECTORY_MODE = 0o700
    # What a number that makes a name unique is put in front of.
    EXTENSION = /(?:\.pb)?\.[^.]*\z/
    private_constant :FLAGS, :MODE, :DIRECTORY_MODE, :EXTENSION

    class << self
      # Writes a new file. Makes the directory if need be, which only its owner can enter. Where the name is taken, a
      # number is put into it: "a.pprof", "a-1.pprof", …
      #
      # @param path [String]
      # @param bytes [String]
      # @return [String] the name under which the file is
      # @raise [SystemCallError] when it cannot be written; nothing of it is left behind
      def create(path, bytes)
        make_directory(File.dirname(path), DIRECTORY_MODE)
        with_temporary(path, bytes) { |temporary| names(path).find { |name| publish(temporary, name) } }
      end

      # Writes a file, in place of the one that is there.
      #
      # @param path [String, #to_path]
      # @param bytes [String]
      # @return [void]
      # @raise [SystemCallError] when it cannot be written; what was there is as it was
      def write(path, bytes)
        path = File.path(path)
        if File.exist?(path) && !planted?(path)
          # A link stays one, and what is no file (/dev/stdout, a pipe) cannot be replaced but written to.
          path = File.realpath(path)
          return File.binwrite(path, bytes) unless File.file?(path)
        end
        with_temporary(path, bytes) { |temporary| File.rename(temporary, path) }
      end

      private

      # Whether somebody else may have put a link or pipe there, in a directory such as /tmp: then it is not used but
      # replaced, or the system refuses that. The kernel's rule for links (fs.protected_symlinks) where it has one.
      def planted?(path)
        directory = File.stat(File.dirname(path))
        return false unless directory.sticky? && directory.world_writable?

        ![Process.euid, directory.uid].include?(File.lstat(path).uid)
      end

      # The parents of a directory may have other uses: they get the mode that the umask says.
      def make_directory(path, mode = 0o777)
        return if File.directory?(path)

        parent = File.dirname(path)
        make_directory(parent) unless parent == path
        Dir.mkdir(path, mode)
      rescue Errno::EEXIST
        # Another thread or process was faster, or there is a file in the way.
        raise unless File.directory?(path)
      end

      # Yields the name of a file with these bytes in the same directory, where renaming is atomic.
      def with_temporary(path, bytes)
        temporary = File.join(File.dirname(path), ".memprofiler-#{Random.urandom(8).unpack1("H*")}.tmp")
        File.open(temporary, FLAGS, MODE) do |file|
          # Whatever the default encodings.
          file.binmode
          # Unbuffered: a buffer that a forked child inherits would be written by both.
          file.sync = true
          file.write(bytes)
        end
        yield temporary
      ensure
        remove(temporary)
      end

      def names(path)
        extension = File.basename(path)[EXTENSION].to_s
        stem = path.delete_suffix(extension)
        (0..).lazy.map { |number| number.zero? ? path : "#{stem}-#{number}#{extension}" }
      end

      # A hard link is as atomic as a rename, but fails where the name is taken.
      def publish(temporary, path)
        File.link(temporary, path)
        true
      rescue Errno::EEXIST
        false
      rescue SystemCallError
        # Not every file system has hard links.
        return false if File.exist?(path) || File.symlink?(path)

        File.rename(temporary, path)
        true
      end

      def remove(path)
        File.unlink(path)
      rescue SystemCallError
        # It was renamed, or never came into being.
        nil
      end
    end
  end
end
