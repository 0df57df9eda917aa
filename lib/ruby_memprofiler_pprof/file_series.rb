# frozen_string_literal: true

module MemprofilerPprof
  # The files that this process has written. Past a number of them one is removed for each that comes: the first and the
  # newest half stay, and the others become ever sparser, so that the series spans the life of the process.
  # @api private
  class FileSeries
    # @!attribute path
    #   @return [String]
    # @!attribute time
    #   @return [Numeric] in seconds, by any clock that does not go backwards
    # @!attribute identity
    #   @return [Array] device, inode and time of modification, by which a file that somebody else put there is noticed
    Entry = Struct.new(:path, :time, :identity)
    private_constant :Entry

    # Which file to remove: of those older than the newest half, the one that leaves the smallest gap for its age. What
    # is left has gaps that grow in proportion to the age.
    #
    # @param times [Array<Numeric>] when each file was written, ascending; one more than are to be kept
    # @return [Integer] an index
    def self.superfluous(times)
      latest = [(times.size - 1) / 2, 1].max
      middle = 1...(times.size - latest)
      middle.min_by { |index| (times[index + 1] - times[index - 1]).fdiv([times.last - times[index], 1e-9].max) } || 0
    end

    # @param keep [Integer] how many files; 0 keeps all
    def initialize(keep)
      @keep = keep
      @entries = []
    end

    # @return [Array<String>] the files that are kept, oldest first
    def paths
      @entries.map(&:path)
    end

    # Takes a file that was just written, and removes another if there are too many now.
    # @param path [String]
    # @param time [Numeric] in seconds
    # @return [void]
    def add(path, time)
      @entries << Entry.new(path, time, identity(path))
      return if @keep.zero? || @entries.size <= @keep

      remove(@entries.delete_at(self.class.superfluous(@entries.map(&:time))))
    end

    # Sets the time of modification of all files to now, by which other processes see that this one still lives. Their
    # order stays, a millisecond apart.
    # @param now [Time]
    # @return [void]
    def touch(now)
      @entries.reverse.each_with_index { |entry, age| renew(entry, now - (age * 0.001)) }
    end

    private

    def renew(entry, time)
      return unless entry.identity && entry.identity == identity(entry.path)

      File.utime(time, time, entry.path)
      entry.identity = identity(entry.path)
    rescue SystemCallError
      # It was removed meanwhile, or may not be touched.
      nil
    end

    def remove(entry)
      File.unlink(entry.path) if entry.identity && entry.identity == identity(entry.path)
    rescue SystemCallError
      # It was removed meanwhile, or may not be.
      nil
    end

    def identity(path)
      stat = File.lstat(path)
      [stat.dev, stat.ino, stat.mtime]
    rescue SystemCallError
      nil
    end
  end
end
