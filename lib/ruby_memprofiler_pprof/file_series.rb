# frozen_string_literal: true

module MemprofilerPprof
  # The files that this process has written. Past a number of them one is removed for each that comes: the first and the
  # newest half stay, and the others become ever sparser, so that the series spans the life of the process.
  # @api private
  class FileSeries
    # @!attribute time
    #   @return [Numeric] in seconds, by any clock that does not go backwards
    # @!attribute files
    #   @return [Array<Written>] the profile, and what was written beside it
    Entry = Struct.new(:time, :files)
    # @!attribute path
    #   @return [String]
    # @!attribute identity
    #   @return [Array] device, inode and time of modification, by which a file that somebody else put there is noticed
    Written = Struct.new(:path, :identity)
    private_constant :Entry, :Written

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

    # @param keep [Integer] how many files, from the next one on; 0 keeps all
    attr_writer :keep

    # @param keep [Integer] how many files; 0 keeps all
    def initialize(keep)
      @keep = keep
      @entries = []
    end

    # @return [Array<String>] the profiles that are kept, oldest first
    def paths
      @entries.map { |entry| entry.files.first.path }
    end

    # Takes a profile that was just written, and removes others if there are too many now.
    # @param path [String]
    # @param time [Numeric] in seconds
    # @param beside [Array<String>] other files, which are kept as long as the profile
    # @return [void]
    def add(path, time, *beside)
      @entries << Entry.new(time, [path, *beside].map { |each| Written.new(each, identity(each)) })
      remove_superfluous until @keep.zero? || @entries.size <= @keep
    end

    # Sets the time of modification of all files to now, by which other processes see that this one still lives. Their
    # order stays, a millisecond apart.
    # @param now [Time]
    # @return [void]
    def touch(now)
      @entries.reverse.each_with_index do |entry, age|
        entry.files.each { |file| renew(file, now - (age * 0.001)) }
      end
    end

    private

    def remove_superfluous
      @entries.delete_at(self.class.superfluous(@entries.map(&:time))).files.each { |file| remove(file) }
    end

    def renew(file, time)
      return unless file.identity && file.identity == identity(file.path)

      File.utime(time, time, file.path)
      file.identity = identity(file.path)
    rescue SystemCallError
      # It was removed meanwhile, or may not be touched.
      nil
    end

    def remove(file)
      File.unlink(file.path) if file.identity && file.identity == identity(file.path)
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
