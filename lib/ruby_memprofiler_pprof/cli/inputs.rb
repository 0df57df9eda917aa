# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/progress"
require "ruby_memprofiler_pprof/peak_file"
require "ruby_memprofiler_pprof/retainers_file"

module MemprofilerPprof
  class CLI
    # Which profiles a command reads, and how.
    module Inputs
      # Where profiles are by default.
      DIRECTORY = "tmp/profiles"
      # The names of profiles in a directory.
      NAMES = "*.{pprof,pb.gz,pb}"
      # What stands for stdin.
      DASH = "-"

      class << self
        # @param files [Array<String>]
        # @return [String, nil] the one that was written last
        def newest(files)
          files.max_by { |file| [written_at(file), file] }
        end

        private

        def written_at(file)
          File.mtime(file)
        rescue SystemCallError
          # It was removed meanwhile, as old ones are.
          Time.at(0)
        end
      end

      private

      # @param arguments [Array<String>]
      # @return [Array<String>] the files that they name; without any, those that the command takes from DIRECTORY
      def files(arguments)
        files = arguments.empty? ? default : arguments.flat_map { |argument| expand(argument) }
        raise Failure, "stdin (-) can be read only once" if [*files, *@base].count(DASH) > 1

        files = profiles_of(files)
        # In the locale C Ruby does not know that names may be UTF-8, and could not put them beside others.
        files.map { |file| file.dup.force_encoding(Encoding::UTF_8) }
      end

      # The files without those that belong to others, unless there is nothing else.
      def profiles_of(files)
        profiles = files.reject { |file| beside?(file) }
        profiles.empty? ? files : profiles
      end

      # Whether it was recorded beside a profile, and is not to be added to that.
      def beside?(file)
        RetainersFile.name?(file) || PeakFile.name?(file)
      end

      # The files of a directory or pattern, sorted by name.
      def expand(argument)
        # Names of existing directories and files are taken literally, even if they contain wildcards.
        return children(argument) if File.directory?(argument)
        return [argument] if File.exist?(argument)

        found = Dir.glob(argument)
        return found if found.any?

        # That there is no such file is reported when it is read.
        (@absent ||= []) << argument.b
        [argument]
      end

      # Whether a file was there, and was removed meanwhile, as a running process removes old ones.
      def removed?(file)
        !File.exist?(file) && !@absent&.include?(file.b)
      end

      # Whether it was found in a directory, and not named.
      def found?(file)
        @found&.include?(file.b)
      end

      def children(directory)
        # Dir.glob finds nothing there.
        raise Failure, "#{directory}: #{Errno::EACCES.new.message}" unless File.readable?(directory)

        found = CLI.paths(directory, Dir.glob(NAMES, base: directory))
        (@found ||= []).concat(found.map(&:b))
        found
      end

      # @return [String] DIRECTORY, for a command that takes files or processes
      # @raise [Failure] if there is none
      def default_directory
        return DIRECTORY if File.directory?(DIRECTORY)

        raise Failure, "neither a file nor a process named, and there is no #{DIRECTORY}, see #{@invocation} --help"
      end

      def default
        found = profiles_of(expand(DIRECTORY))
        if found.empty? || found == [DIRECTORY]
          raise Failure, "no file named, and no profiles in #{DIRECTORY}, see #{@invocation} --help"
        end

        files, which = choose(found)
        tell "#{which} in #{DIRECTORY}"
        files
      end

      # Which of several files are taken if none is named: here the last one that was written.
      #
      # @param found [Array<String>]
      # @return [Array(Array<String>, String)] those, and what they are, in words
      def choose(found)
        file = Inputs.newest(found)
        [[file], "#{File.basename(file)}, #{found.one? ? "the only profile" : "the newest of #{found.size} profiles"}"]
      end

      # @param file [String]
      # @return [String] what to call it
      def name(file)
        file == DASH ? "stdin" : file.dup.force_encoding(Encoding::UTF_8)
      end

      # @param file [String]
      # @param extension [String]
      # @return [String] what to call, in this directory, a file that is made from it
      def derived_name(file, extension)
        (File.basename(name(file)).b.sub(/\.(pprof|pb\.gz|pb|gz)\z/, "") << extension).force_encoding(Encoding::UTF_8)
      end

      def load(file)
        file == DASH ? stdin : Profile.load(file)
      rescue SystemCallError => e
        raise Failure, "#{name(file)}: #{system_message(e)}"
      end

      # Is kept, for commands that read each file twice.
      def stdin
        raise Failure, "stdin (-) is a terminal, and no profile" if $stdin.tty?

        @stdin ||= Profile.load($stdin.binmode)
      rescue ProfileError => e
        raise ProfileError, e.message.sub(/\A.*?(?=: )/, name(DASH))
      end

      # What is in each file. Several files are read at a time, and only those are in memory. A file that was found in a
      # directory, but cannot be read, is left out and told, so that it does not spoil the others.
      #
      # @param files [Array<String>]
      # @yieldparam profile [Profile]
      # @yieldparam file [String]
      # @return [Enumerator::Lazy] of Arrays: a file, and the block's value for it
      # @raise [Failure, ProfileError] while it is enumerated: if a file that was named cannot be read, or none can
      def read_each(files)
        read = ReadAhead.new(files) do |file|
          [file, yield(load(file), file)]
        rescue Failure, ProfileError => e
          leave_out(file, e)
        end
        Enumerator.new do |pairs|
          found = Progress.new(read, files.size).count { |pair| pairs << pair if pair }
          raise Failure, "none of these profiles can be read" if found.zero?
        end.lazy
      end

      # @return [nil]
      # @raise [Failure, ProfileError] the error, if the file was named
      def leave_out(file, error)
        return if removed?(file)
        raise error unless found?(file)

        tell "left out #{error.message}"
        nil
      end
    end
  end
end
