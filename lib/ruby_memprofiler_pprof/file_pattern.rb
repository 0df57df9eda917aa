# frozen_string_literal: true

module MemprofilerPprof
  # A template for file names, such as `tmp/profiles/mem-%{pid}-%{isotime}.pprof`.
  #
  # - `%{pid}`: the id of the process that writes
  # - `%{isotime}`: the time in UTC in ISO 8601's basic format, 20261231T235959Z. It has no colon, which scp and others
  #   take for the end of a host name
  # - `%{unixtime}`: seconds since 1970
  # - `%{index}`: how many profiles this process wrote before, from 0
  # - `%%`: a percent sign
  #
  # As with Kernel#format, `%<index>05d` pads with zeros. By default a relative name is taken from the directory that
  # is current when the pattern is created, so that a daemon or a program that changes directories keeps writing to the
  # same place.
  class FilePattern
    # What can stand between the braces.
    KEYS = %i[pid isotime unixtime index].freeze
    # A percent sign and what may follow it; captures the key, if there is one.
    DIRECTIVE = /%%|%\{([^}]*)\}|%<([^>]*)>[-+ 0]*\d*[a-z]/i
    private_constant :DIRECTIVE

    # @param pattern [String, Pathname]
    # @param directory [String, nil] from which a relative name is taken; nil is the current one
    # @raise [ArgumentError] naming an unknown key and those allowed, or saying what else is wrong: with a relative name
    #   it may be that the current directory is gone
    # @raise [TypeError] if it is not a String or Pathname
    def initialize(pattern, directory: nil)
      @pattern = to_path(pattern)
      @directory = directory
      check
    end

    # @param index [Integer]
    # @param pid [Integer]
    # @param time [Time]
    # @return [String] the absolute name of a file
    def expand(index: 0, pid: Process.pid, time: Time.now)
      isotime = time.getutc.strftime("%Y%m%dT%H%M%SZ")
      File.expand_path(format(@pattern, pid: pid, isotime: isotime, unixtime: time.to_i, index: index), @directory)
    end

    # @return [String] the pattern as it was given
    def to_s
      @pattern
    end

    private

    def to_path(pattern)
      path = pattern.respond_to?(:to_path) ? pattern.to_path : pattern
      return path.dup.freeze if path.is_a?(String)

      raise TypeError, "pattern must be a String or Pathname, got #{pattern.inspect}"
    end

    def check
      reject("is empty") if @pattern.empty?
      reject("contains a null byte") if @pattern.include?("\0")
      reject("names a directory, not a file") if @pattern.end_with?("/")
      check_directives
      @directory ||= base
      expand
    rescue ArgumentError, SystemCallError => e
      raise if e.message.start_with?("pattern: ")

      # From format, pwd or expand_path.
      reject("cannot be expanded: #{e.message}")
    end

    # The current directory, asked for only by a relative name: a deployment may have removed it while the process runs.
    def base
      @pattern.start_with?("/", "~") ? "/" : Dir.pwd
    end

    def check_directives
      rest = @pattern.gsub(DIRECTIVE) do
        key = Regexp.last_match(1) || Regexp.last_match(2)
        next if key.nil? || KEYS.include?(key.to_sym)

        reject("has the unknown key #{key.inspect}, allowed are #{KEYS.join(", ")}")
      end
      reject("has a % that begins no key, write %% for the sign itself") if rest.include?("%")
    end

    def reject(reason)
      raise ArgumentError, "pattern: #{@pattern.inspect} #{reason}"
    end
  end
end
