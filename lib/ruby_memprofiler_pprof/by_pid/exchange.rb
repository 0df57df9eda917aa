# frozen_string_literal: true

require "securerandom"

module MemprofilerPprof
  module ByPid
    # A directory among the files of another process, in which it finds the file that it is to load, and leaves its
    # answer. It belongs to that process's user, and nobody else can look or write there.
    # @api private
    class Exchange
      # Where to try, in this order.
      DIRECTORIES = %w[/tmp /var/tmp /dev/shm /run].freeze
      NAME = "memprofiler-attach"
      private_constant :DIRECTORIES, :NAME

      # Makes one for the time of the block.
      # @param subject [Subject]
      # @yieldparam exchange [Exchange]
      # @raise [Error] if nothing can be written there
      def self.open(subject)
        exchange = new(subject)
        yield exchange
      ensure
        exchange&.remove
      end

      # @return [String] the directory in which it is, for the process
      attr_reader :parent

      # @param subject [Subject]
      def initialize(subject)
        @subject = subject
        @owner = subject.owner
        @name = "#{NAME}-#{subject.own_pid}-#{SecureRandom.hex(8)}"
        @parent = DIRECTORIES.find { |directory| make(directory) } or
          raise Error, "process #{subject.pid} has no directory for temporary files: there must be one of " \
                       "#{DIRECTORIES.join(", ")} in which its user can write (#{@problem})"
      end

      # @param name [String]
      # @return [String] the path of a file in it, for the process
      def path(name)
        "#{@parent}/#{@name}/#{name}"
      end

      # Writes a file that only the process's user can read.
      # @param name [String]
      # @param text [String]
      # @return [String] its path, for the process
      def write(name, text)
        File.open(outside(name), File::WRONLY | File::CREAT | File::EXCL | File::NOFOLLOW, 0o600) do |file|
          give(file)
          file.write(text)
        end
        path(name)
      end

      # @param name [String]
      # @return [String, nil] the text of a symbolic link, once it is there
      def answer(name)
        File.readlink(outside(name)).force_encoding(Encoding::UTF_8).scrub
      rescue Errno::ENOENT
        nil
      end

      # @return [void]
      def remove
        directory = outside
        Dir.each_child(directory) { |name| File.unlink(File.join(directory, name)) }
        Dir.rmdir(directory)
      rescue SystemCallError
        # The process has ended, and its files with it, or somebody else has removed them.
        nil
      end

      private

      def outside(name = nil)
        [@subject.file("#{@parent}/#{@name}"), *name].join("/")
      end

      def make(directory)
        return unless real?(directory) && safe?(File.lstat(@subject.file(directory)))

        @parent = directory
        Dir.mkdir(outside, 0o700)
        File.open(outside, File::RDONLY | File::NOFOLLOW) { |opened| give(opened) }
        true
      rescue SystemCallError => e
        @problem = e.message
        nil
      end

      # No link leads there: an absolute one of a container would be followed outside of it.
      def real?(directory)
        [File.dirname(directory), directory].all? { |path| File.lstat(@subject.file(path)).directory? }
      end

      # Nobody else may write there, or everybody can only rename what is theirs.
      def safe?(stat)
        stat.sticky? || (!stat.world_writable? && stat.uid == @owner.first)
      end

      def give(file)
        file.chown(*@owner) unless @owner == [file.stat.uid, file.stat.gid]
      end
    end
  end
end
