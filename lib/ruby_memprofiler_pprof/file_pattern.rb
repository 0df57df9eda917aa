# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"
require "ruby_memprofiler_pprof/utf8"

module MemprofilerPprof
  # A template for file names, such as `tmp/profiles/mem-%{pid}-%{isotime}.pprof`.
  #
  # - `%{pid}`: the id of the process that writes
  # - `%{hostname}`: the machine's name, in a container usually the container's or pod's
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
    KEYS = %i[pid hostname isotime unixtime index].freeze
    # A percent sign and what may follow it; captures the key, if there is one.
    DIRECTIVE = /%%|%\{([^}]*)\}|%<([^>]*)>[-+ 0]*\d*[a-z]/i
    # What a name is made of: directives, and other text.
    PIECE = /%%|%\{[^}]*\}|%<[^>]*>[-+ 0]*\d*[a-z]|[^%]+/i
    # What a directive that can be recognised in a name looks like there.
    ISOTIME = /\A%(?:\{isotime\}|<isotime>s)\z/
    HOSTNAME = /\A%(?:\{hostname\}|<hostname>s)\z/
    INTEGER = /\A%(?:\{(?:pid|unixtime|index)\}|<(?:pid|unixtime|index)>(?:0\d+)?[du])\z/
    private_constant :DIRECTIVE, :PIECE, :ISOTIME, :HOSTNAME, :INTEGER

    # @param pattern [String, Pathname]
    # @param directory [String, nil] from which a relative name is taken; nil is the current one
    # @raise [ArgumentError] naming an unknown key and those allowed, or saying what else is wrong: with a relative name
    #   it may be that the current directory is gone
    # @raise [TypeError] if it is not a String or Pathname
    def initialize(pattern, directory: nil)
      @pattern = to_path(pattern)
      @directory = directory && UTF8.text(directory)
      check
    end

    # @param index [Integer]
    # @param pid [Integer]
    # @param time [Time]
    # @param hostname [String, nil] nil is this machine's
    # @return [String] the absolute name of a file
    def expand(index: 0, pid: Process.pid, time: Time.now, hostname: nil)
      hostname ||= machine if @pattern.include?("hostname")
      isotime = time.getutc.strftime("%Y%m%dT%H%M%SZ")
      # In a name without directives Ruby would warn of the arguments, and with `ruby -d` raise an error.
      name = format("#{@pattern}%<nothing>s", pid: pid, hostname: hostname, isotime: isotime, unixtime: time.to_i,
                                              index: index, nothing: nil)
      File.expand_path(name, @directory)
    end

    # @return [String] the last directory that the names of all files have in common
    def common_directory
      File.expand_path(@pattern[%r{\A[^%]*/}] || ".", @directory)
    end

    # @param suffix [String] plain text
    # @return [FilePattern] for the same names, with this before the extension
    def with_suffix(suffix)
      *directories, name = @pattern.rpartition("/")
      extension = name[AtomicFile::EXTENSION].to_s
      self.class.new("#{directories.join}#{name.delete_suffix(extension)}#{suffix}#{extension}", directory: @directory)
    end

    # Existing files with names that this pattern makes, whatever made them; also with the number that {AtomicFile} puts
    # before the extension. None if nothing in the names says which process or when: any file could be called that.
    # @return [Array<String>]
    def files
      return [] unless @pattern.match?(/%[{<](?:pid|isotime|unixtime)[}>]/)

      *directories, name = @pattern.split("/").reject(&:empty?)
      directories.reduce([start(directories)]) { |found, part| found.flat_map { |path| inside(path, part) } }
                 .flat_map { |path| AtomicFile.matching(path, /\A#{numbered(name)}\z/) }
    end

    # Those of {files} in whose names nothing but the process id differs; none if the pattern has no `%{pid}`.
    # @return [Hash{Integer => String}] by process id
    def files_by_pid
      return {} unless @pattern.match?(/%[{<]pid[}>]/)

      files.filter_map { |path| pid_in(path)&.then { |pid| [pid, path] } }.to_h
    end

    # @return [String] the pattern as it was given
    def to_s
      @pattern
    end

    private

    def machine
      # Loaded only here, when a file is written: it loads gems, which Bundler may want in another version.
      require "socket"
      Socket.gethostname
    end

    def to_path(pattern)
      path = pattern.respond_to?(:to_path) ? pattern.to_path : pattern
      return UTF8.text(path).freeze if path.is_a?(String)

      raise TypeError, "pattern must be a String or Pathname, got #{pattern.inspect}"
    end

    def pid_in(path)
      path.b.scan(/\d+/).map { |digits| Integer(digits, 10) }.find { |pid| expand(pid: pid) == path }
    end

    # Where the search for files begins. A user's directory is taken from the list of those that follow.
    def start(directories)
      return File.expand_path(directories.shift) if @pattern.start_with?("~")

      @pattern.start_with?("/") ? "/" : @directory
    end

    # As expand does, . and .. are taken for what they mean.
    def inside(path, part)
      return [File.expand_path(File.join(path, part.gsub("%%", "%")))] unless part.match?(/%[{<]/)

      AtomicFile.matching(path, /\A#{source(part)}\z/).reject { |found| File.symlink?(found) }
    end

    def numbered(name)
      extension = name[AtomicFile::EXTENSION].to_s
      "#{source(name.delete_suffix(extension))}(?:#{AtomicFile::SEPARATOR}\\d+)?#{source(extension)}"
    end

    # The source of a regular expression for what a part of the pattern becomes.
    def source(part)
      part.scan(PIECE).map do |piece|
        case piece
        when "%%" then "%"
        when ISOTIME then "\\d{8}T\\d{6}Z"
        when HOSTNAME then "[\\w.-]+"
        when INTEGER then "\\d+"
        when /\A%/ then "(?!)" # Formats so rare that such names are not recognised.
        else Regexp.escape(piece)
        end
      end.join
    end

    def check
      reject("is empty") if @pattern.empty?
      reject("contains a null byte") if @pattern.include?("\0")
      reject("names a directory, not a file") if @pattern.end_with?("/")
      check_directives
      @directory ||= base
      expand(hostname: "host")
    rescue ArgumentError, EncodingError, SystemCallError => e
      raise if e.message.start_with?("pattern: ")

      # From format, pwd or expand_path.
      reject("cannot be expanded: #{e.message}")
    end

    # The current directory, asked for only by a relative name, which {#check} refuses if that directory is gone.
    def base
      @pattern.start_with?("/", "~") ? "/" : UTF8.current_directory
    end

    def check_directives
      reject("is not UTF-8") unless @pattern.valid_encoding?
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
