# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/directories"
require "ruby_memprofiler_pprof/utf8"

module MemprofilerPprof
  # Writes files atomically: a file appears under its name only when it is complete.
  # @api private
  module AtomicFile
    # O_EXCL and O_NOFOLLOW: where others may write, no file or link that they put there beforehand is used.
    FLAGS = File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW | File::BINARY
    # Profiles contain the names of the program's classes and files, so only their owner may read them.
    MODE = 0o600
    DIRECTORY_MODE = 0o700
    # The extension of a name; a number that makes the name unique goes before it.
    EXTENSION = /(?:\.pb)?\.[^.]*\z/
    # What is before that number. So the name sorts after the older one without it: by bytes, and where `ls` takes only
    # letters and digits into account.
    SEPARATOR = "_x"
    TEMPORARY = /\A\.memprofiler-\h{16}\.tmp\z/
    private_constant :FLAGS, :MODE, :DIRECTORY_MODE, :TEMPORARY

    class << self
      # Writes a new file. Creates a missing directory, which only its owner can enter. If the name is taken, a number
      # is added: "a.pprof", "a_x1.pprof", …
      #
      # @param path [String]
      # @param bytes [String]
      # @return [String] the name under which the file is
      # @raise [SystemCallError] when it cannot be written; nothing of it is left behind
      def create(path, bytes)
        make_directory_of(path)
        with_temporary(path, bytes) { |temporary| names(path).find { |name| publish(temporary, name) } }
      end

      # Creates the directory of a file, which only its owner can enter, and parents that are missing.
      #
      # @param path [String, #to_path] of the file
      # @return [void]
      # @raise [SystemCallError] when it cannot be created
      def make_directory_of(path)
        Directories.make(File.dirname(path), DIRECTORY_MODE)
      end

      # Creates the directory of the file that the argument `out` of a method names, if it names one.
      #
      # @param out [String, #to_path, nil]
      # @return [void]
      # @raise [TypeError] if it is something else
      # @raise [SystemCallError] as {make_directory_of}
      def prepare(out)
        return unless out

        Argument.check(:out, out, "nil, a String or a Pathname", TypeError) do
          out.is_a?(String) || out.respond_to?(:to_path)
        end
        make_directory_of(out)
      end

      # Writes a file, replacing one that exists. Creates no directory.
      #
      # @param path [String, #to_path]
      # @param bytes [String]
      # @return [void]
      # @raise [SystemCallError] when it cannot be written; an existing file is left as it was
      def write(path, bytes)
        path = File.path(path)
        if File.exist?(path) && !planted?(path)
          # A symbolic link is kept: its target is replaced. Devices and pipes (/dev/stdout) can only be written to.
          path = File.realpath(path)
          return File.binwrite(path, bytes) unless File.file?(path)
        end
        with_temporary(path, bytes) { |temporary| File.rename(temporary, path) }
      end

      # Fails as {write} will, as far as that is known before there are bytes.
      #
      # @param path [String]
      # @return [void]
      # @raise [SystemCallError]
      def check(path)
        path = File.realpath(path) if File.exist?(path)
        raise Errno::EISDIR if File.directory?(path)

        with_temporary(path, "") { nil } if File.file?(path) || !File.exist?(path)
      end

      # Fails as {create} will, likewise.
      #
      # @param directory [String] of the file
      # @return [void]
      # @raise [SystemCallError]
      def check_directory(directory)
        with_temporary(File.join(Directories.existing(directory), "new"), "") { nil }
      end

      # @param directory [String]
      # @return [Array<String>] the temporary files there: of a file being written, or of a process that was killed
      def temporaries(directory)
        matching(directory, TEMPORARY)
      end

      # @param directory [String]
      # @param names [Regexp]
      # @return [Array<String>] the files there with such names; none of this gem's has a name that is not UTF-8
      def matching(directory, names)
        MemprofilerPprof.names_in(directory).map { |name| UTF8.text(name) }.select(&:valid_encoding?).grep(names)
                        .map { |name| File.join(directory, name) }
      end

      private

      # Whether another user may have planted a link or pipe there, in a directory such as /tmp. It must not be
      # followed, so it is replaced, which the system may refuse. This is the rule of Linux's fs.protected_symlinks.
      def planted?(path)
        directory = File.stat(File.dirname(path))
        return false unless directory.sticky? && directory.world_writable?

        ![Process.euid, directory.uid].include?(File.lstat(path).uid)
      end

      # Beyond the limit on the size of files, a write would end the program by SIGXFSZ.
      def check_limit(bytes)
        raise Errno::EFBIG if bytes.bytesize > Process.getrlimit(:FSIZE).first
      end

      # Yields the name of a temporary file with these bytes, in the same directory so that renaming it is atomic.
      def with_temporary(path, bytes)
        check_limit(bytes)
        temporary = File.join(File.dirname(path), ".memprofiler-#{Random.urandom(8).unpack1("H*")}.tmp")
        File.open(temporary, FLAGS, MODE) do |file|
          # No transcoding, whatever the default encodings are.
          file.binmode
          # Unbuffered: a buffer that a forked child inherits would be written by both.
          file.sync = true
          file.write(bytes)
        end
        yield temporary
      rescue SystemCallError => e
        # Names the file that was asked for, of which the temporary one says nothing.
        raise SystemCallError.new(path, e.errno, "write")
      ensure
        remove(temporary) if temporary
      end

      def names(path)
        extension = File.basename(path)[EXTENSION].to_s
        stem = path.delete_suffix(extension)
        (0..).lazy.map { |number| number.zero? ? path : "#{stem}#{SEPARATOR}#{number}#{extension}" }
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
        # It was renamed, or could not be created.
        nil
      end
    end
  end
end
