# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/profiled_environment"
require "ruby_memprofiler_pprof/configuration/settings"
require "ruby_memprofiler_pprof/run_note"

module MemprofilerPprof
  class CLI
    # `run`, and the program ruby_memprofiler_pprof_profile.
    class Run < Command
      SUMMARY = "run a command with the profiler in every Ruby that it starts"
      USAGE = "[OPTION]... [--] COMMAND [ARGUMENT]..."
      DESCRIPTION = <<~TEXT
        Replaces this process with COMMAND, and runs the heap profiler in it and in every other Ruby process that it
        starts. Each writes gzipped pprof profiles, by default to tmp/profiles, every 30 seconds and when it exits. The
        gem does not have to be in the program's Gemfile. If the profiler cannot start, stderr says why and the program
        runs without it. If COMMAND is a Ruby program, it says on stderr at its end which command shows its profiles.

        Each option sets the variable below it in the environment of COMMAND.
      TEXT
      EXAMPLES = <<~TEXT
        %{me} bundle exec puma
        %{me} --rate 0.1 --pattern 'boot-%{pid}.pb.gz' -- bin/rails runner 1
        %{me} --start-paused --toggle-on URG -- rake db:seed   # kill -URG PID starts and stops it
        %{me} --cpu -- bin/rails runner Report.generate        # where the time goes: tmp/profiles/cpu
        %{me} --interval 86400 --dump-on URG -- bin/jobs       # kill -URG PID writes a profile

        URG is ignored by processes that do not handle it, while most other signals end them. A handler that the program
        installs later replaces the profiler's, so choose a signal that it does not use.

        Exit status: that of COMMAND; 126 if it cannot be run, 127 if it is not found, 2 for a wrong option.
      TEXT
      # Short names of options.
      ALIASES = { sample_rate: "--rate" }.freeze
      # The options, in the order of the help.
      GROUPS = {
        "Files" => Configuration::FLUSHER_SETTINGS,
        "Destinations" => Configuration::DESTINATION_SETTINGS,
        "CPU time" => Configuration::CPU_SETTINGS,
        "Signals and socket" => Configuration::PROCESS_SETTINGS,
        "Sampling" => Configuration::COLLECTOR_SETTINGS,
        "Flushes" => Configuration::FLUSH_SETTINGS
      }.freeze
      private_constant :ALIASES, :GROUPS

      # @return [void] returns never, except by an error
      # @raise [Failure]
      def call(arguments)
        raise Failure, "no command given, see #{@invocation} --help" if arguments.empty?

        command, *rest = arguments
        # With a pair, exec never runs a shell, which would split the command.
        exec(environment, [command, command], *rest)
      rescue Errno::ENOENT => e
        raise Failure.new(e.message.sub("No such file or directory", "command not found"), status: 127)
      rescue SystemCallError, ArgumentError => e
        raise Failure.new(e.message, status: 126)
      end

      private

      def environment
        { **ProfiledEnvironment.variables, **variables, RunNote::VARIABLE => (Process.pid.to_s unless @quiet) }
      end

      def variables
        @variables ||= {}
      end

      def define_options(parser)
        parser.banner = ""
        GROUPS.each do |title, settings|
          settings = settings.select { |setting| offers?(setting) }
          parser.separator("\n#{title}:") if settings.any?
          settings.each do |setting|
            parser.on(*names(setting), setting.purpose, *details(setting)) { |value| set(setting, value) }
          end
        end
        parser.separator("\nOther:")
        define_other(parser)
      end

      def define_other(parser)
        parser.on("-q", "--quiet", "do not say at the end which command shows the profiles") { @quiet = true }
      end

      # Whether a setting is an option.
      def offers?(setting)
        setting.option
      end

      def details(setting)
        text = "#{setting.type.allowed} (default: #{setting.default})"
        [*text.scan(/\S.{0,75}(?!\S)/), "$#{setting.variable}"].map { |line| "  #{line}" }
      end

      def names(setting)
        return [setting.option.sub("--", "--[no-]")] if setting.type.boolean?

        [ALIASES[setting.keyword], "#{setting.option} #{setting.type.placeholder}"].compact
      end

      def set(setting, value)
        # As the command will read the variable: what is not UTF-8 is refused.
        unless setting.type.boolean? || !setting.type.parse(UTF8.text(value.strip)).nil?
          raise Failure, "#{setting.option} must be #{setting.type.allowed}, got #{setting.type.show(value)}"
        end

        variables[setting.variable] = value.to_s
      end
    end
  end
end
