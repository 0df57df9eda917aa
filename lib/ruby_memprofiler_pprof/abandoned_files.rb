# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"
require "ruby_memprofiler_pprof/peak_file"
require "ruby_memprofiler_pprof/retainers_file"

module MemprofilerPprof
  # Removes the profiles of processes that have ended: those older than some days, and the oldest of more than {MOST}.
  #
  # A living process renews its files' time of modification every hour ({FileSeries#touch}); what is older belongs to
  # none. Nobody asks whether a process id exists: it may be one of another container, or used again.
  #
  # Removed is only what has a name that the pattern makes, is a regular file of this user, and can be read as a profile
  # of this gem; and with it what such files beside it record ({RetainersFile}, {PeakFile}), and the process's own
  # directory if that is empty then. Several processes may do so at once.
  # @api private
  class AbandonedFiles
    # Seconds after which a file that was not renewed belongs to no living process.
    AFTER = 3 * 3600
    # How many of them are kept, however new.
    MOST = 1000
    # How many are removed at a time, since each is read before.
    AT_ONCE = 20
    DAY = 86_400
    # What each profile of this gem has in its comments: of the heap, or of CPU time.
    COMMENT = /\A(?:greatest_weight=|ruby_memprofiler_pprof )/
    # What a directory of a single process is called in a pattern.
    PID = /%[{<]pid[}>]/
    private_constant :AFTER, :MOST, :AT_ONCE, :DAY, :COMMENT, :PID

    # @param pattern [FilePattern]
    # @param days [Numeric] how old they may become; 0 removes none
    def initialize(pattern, days)
      @pattern = pattern
      @seconds = days * DAY
      @own_directories = File.basename(File.dirname(pattern.to_s)).match?(PID)
    end

    # @param now [Time]
    # @return [void]
    def remove(now)
      return if @seconds.zero?

      remove_temporaries(now)
      abandoned = aged(@pattern.files, now).sort_by(&:last)
      removable = abandoned.each_with_index.select { |(_, age), index| index >= MOST || age > @seconds }
      # By chance, so that several processes rarely meet, and those that turn out to be no profiles block no others.
      removable.sample(AT_ONCE).each { |(path, _), _| unlink_all(path, now) if profile?(path) }
    end

    private

    # Temporary files of processes that were killed while they wrote.
    def remove_temporaries(now)
      temporaries = AtomicFile.temporaries(File.dirname(@pattern.expand))
      aged(temporaries, now).each { |path, _| unlink(path) }
    end

    # @return [Array<(String, Float)>] the paths of this user's regular files that belong to no living process, and
    #   their ages in seconds
    def aged(paths, now)
      paths.filter_map do |path|
        stat = File.lstat(path)
        age = now - stat.mtime
        [path, age] if stat.file? && stat.owned? && age > AFTER
      rescue SystemCallError
        # Another process has removed it.
        nil
      end
    end

    # A profile, and what was recorded beside it.
    def unlink_all(path, now)
      besides = [RetainersFile, PeakFile].map { |kind| kind.beside(path) }
      aged(besides, now).each { |beside, _| unlink(beside) if profile?(beside) }
      unlink(path)
      remove_directory(File.dirname(path)) if @own_directories
    end

    def profile?(path)
      Profile.load(path).comments.any?(COMMENT)
    rescue ProfileError, SystemCallError
      false
    end

    def remove_directory(path)
      Dir.rmdir(path)
    rescue SystemCallError
      # There are other files in it, or it is as in {#unlink}.
      nil
    end

    def unlink(path)
      File.unlink(path)
    rescue SystemCallError
      # Another process has removed it, or it may not be removed.
      nil
    end
  end
end
