# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    # `help`, and what --help says without a command.
    class Help < Command
      SUMMARY = "explain a command"
      USAGE = "[COMMAND]"
      DESCRIPTION = "Explains a command with its options; without one, lists the commands."
      EXAMPLES = "%{me} run"

      # @return [Integer]
      def call(arguments)
        name, *rest = arguments
        expect_none(rest)
        CLI.check(name) if name
        puts name ? CLI.command(name).new("#{program} #{name}").help : overview
        0
      end

      private

      def program
        @invocation.delete_suffix(" help")
      end

      def overview
        width = COMMANDS.map(&:size).max
        commands = COMMANDS.map { |name| "  #{name.ljust(width)}  #{CLI.command(name)::SUMMARY}" }
        <<~HELP
          Usage: #{program} COMMAND [OPTION]...

          A heap profiler: finds the call paths that allocated the objects now alive.

          Commands:
          #{commands.join("\n")}

          `#{program} help COMMAND` explains one.

          Options:
            -h, --help     print this and exit
            -v, --version  print the version and exit

          Examples:
            #{program} run bundle exec puma
            #{program} doctor
        HELP
      end
    end
  end
end
