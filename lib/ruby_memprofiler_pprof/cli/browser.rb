# frozen_string_literal: true

require "shellwords"

module MemprofilerPprof
  class CLI
    # Opens files as the desktop does.
    module Browser
      # The platform's own opener.
      OPENER = RUBY_PLATFORM.include?("darwin") ? "open" : "xdg-open"
      private_constant :OPENER

      class << self
        # Tries the commands of BROWSER, which colons separate, then the platform's opener, and waits for it. A command
        # that has no %s for the file gets it as its last argument.
        #
        # @param path [String]
        # @return [void]
        # @raise [Failure] if there is none, or if it fails
        def open(path)
          # An absolute name is no option.
          path = File.expand_path(path, UTF8.current_directory)
          commands = [*ENV.fetch("BROWSER", "").split(":"), OPENER].reject { |command| command.strip.empty? }
          commands.each { |command| return nil if opened?(command, path) }
          raise Failure, "found nothing to open #{path} with: tried #{commands.join(", ")}; $BROWSER can name a program"
        end

        private

        # @return [Boolean] whether there is such a program
        def opened?(command, path)
          words = Shellwords.split(command)
          words << "%s" unless words.any? { |word| word.include?("%s") }
          program, *arguments = words.map { |word| word.gsub("%s") { path } }
          done = system([program, program], *arguments)
          raise Failure, "#{program} could not open #{path}: #{Process.last_status}" if done == false

          done
        rescue ArgumentError => e
          raise Failure, "BROWSER: #{e.message}"
        end
      end
    end
  end
end
