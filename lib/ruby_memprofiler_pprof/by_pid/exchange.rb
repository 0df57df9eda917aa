# frozen_string_literal: true

require "securerandom"

module MemprofilerPprof
  module ByPid
    # A directory among the files of another process, in which it finds the file that it is to load, and leaves its
    # answer. It belongs to that process's user, and nobody else can look or write there. As that user can move it, and
    # put a link in its place, all that this tool does there goes through a descriptor. Its name is given up only when
    # the process looks for nothing in it any more: until then, others must not be able to use that.
    # @api private
    class Exchange
      # Where to try, in this order.
      DIRECTORIES = %w[/tmp /var/tmp /dev/shm /run].freeze
      NAME = "memprofiler-attach"
      OPEN_DIRECTORY = File::RDONLY | File::NOFOLLOW | File::NONBLOCK
      private_constant :DIRECTORIES, :NAME, :OPEN_DIRECTORY

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

      # From now on the process may look for files in it.
      # @return [void]
      def promise
        @promised = true
      end

      # It does not any more.
      # @return [void]
      def settle
        @promised = false
      end

      # Removes its files, and itself, or says why that must remain.
      # @return [void]
      def remove
        Dir.each_child(outside) { |name| File.unlink(outside(name)) }
      rescue SystemCallError
        # Somebody else has removed them.
        nil
      ensure
        discard
      end

      private

      # Where it is, or a file in it, whatever its name leads to by now.
      def outside(name = nil)
        ["/proc/self/fd/#{@opened.fileno}", *name].join("/")
      end

      # Its name, which remains where it is when the process ends, and with it the way there through /proc/PID.
      def named
        "/proc/self/fd/#{@above.fileno}/#{@name}"
      end

      def make(directory)
        return unless real?(directory) && safe?(File.lstat(@subject.file(directory)))

        @parent = directory
        @above = File.open(@subject.file(directory), OPEN_DIRECTORY)
        Dir.mkdir(named, 0o700)
        prepare
      rescue SystemCallError => e
        @problem = "#{directory}: #{SystemCallError.new(nil, e.errno).message}"
        nil
      end

      def prepare
        open_new
        give(@opened)
        true
      rescue SystemCallError
        discard
        raise
      end

      def discard
        if @promised
          warn "memprofiler: process #{@subject.pid} may still do what it was asked for, or have done it: " \
               "`memprofiler ps` says if it has the profiler. As it may look into the directory #{@parent}/#{@name}, " \
               "remove that only when it has ended."
        else
          Dir.rmdir(named)
        end
      rescue SystemCallError
        # It is not empty, or has been moved.
        nil
      ensure
        [@opened, @above].compact.each(&:close)
      end

      # The directory that was just made, and not what somebody has moved or mounted there meanwhile.
      def open_new
        @opened = File.open(named, OPEN_DIRECTORY)
        return if @opened.stat.owned? && Dir.empty?(outside) && mount(@opened) == mount(@above)

        raise Errno::EEXIST, named
      end

      def mount(file)
        File.read("/proc/self/fdinfo/#{file.fileno}")[/^mnt_id:\s*(\d+)/, 1]
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
