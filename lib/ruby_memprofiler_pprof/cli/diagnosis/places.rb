# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"
require "ruby_memprofiler_pprof/configuration"
require "ruby_memprofiler_pprof/directories"
require "ruby_memprofiler_pprof/file_pattern"

module MemprofilerPprof
  class CLI
    class Diagnosis
      # Whether files and the socket can be made where the settings say. Nothing of that remains.
      class Places
        # @param configuration [Configuration]
        def initialize(configuration)
          @configuration = configuration
        end

        # @return [Array(Symbol, String)] status and text of a {Check} of files
        def files
          directories = directories_written_to
          return [:note, "none are written, by the settings"] if directories.empty?

          directories.each do |directory|
            problem = problem(directory)
            return [:failing, "cannot be written to #{directory}: #{problem}"] if problem
          end
          written_to(directories.join(" and "))
        rescue ArgumentError => e
          [:failing, e.message]
        end

        # @return [Array(Symbol, String), nil] likewise of the socket, if the settings want one
        def socket
          return unless @configuration.socket

          path = FilePattern.new(@configuration.socket).expand
          # Loaded only here, since most need no socket.
          require "socket"
          # Its name may be too long.
          Socket.sockaddr_un(path)
          problem = problem(File.dirname(path))
          problem ? [:failing, "cannot be opened as #{path}: #{problem}"] : [:ok, "can be opened as #{path}"]
        rescue ArgumentError => e
          [:failing, "cannot be opened: #{e.message}"]
        end

        private

        # @raise [ArgumentError] if there is no current directory, where these are relative to it
        def directories_written_to
          patterns = [(@configuration.pattern if @configuration.writes_files?),
                      (@configuration.cpu_pattern if @configuration.cpu)].compact
          patterns.map { |pattern| File.dirname(FilePattern.new(pattern).expand) }
        end

        # By a try, since permissions do not say all, as of root in /proc.
        # @return [String, nil] why nothing can be made there
        def problem(directory)
          AtomicFile.check_directory(directory)
          nil
        rescue SystemCallError => e
          "nothing can be made in #{Directories.existing(directory)}: #{SystemCallError.new(nil, e.errno).message}"
        end

        def written_to(directories)
          most, = Process.getrlimit(:FSIZE)
          return [:ok, "can be written to #{directories}"] if most == Process::RLIM_INFINITY

          [most.zero? ? :failing : :note, "can be written to #{directories} if they have at most #{most} bytes " \
                                          "(ulimit -f)"]
        end
      end
    end
  end
end
