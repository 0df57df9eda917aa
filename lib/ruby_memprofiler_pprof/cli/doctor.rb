# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/diagnosis"

module MemprofilerPprof
  class CLI
    # `doctor`.
    class Doctor < Command
      SUMMARY = "check that the profiler works here, and how"
      USAGE = "[--json]"
      DESCRIPTION = <<~TEXT
        Checks that the profiler works with this Ruby, in this directory and with the settings in the environment: loads
        the extension, runs the stack walker's self-test, finds out how deaths can be detected and which bugs this Ruby
        has, and takes a profile. Run it as the program's user, in its directory and with its Ruby.
      TEXT
      EXAMPLES = <<~TEXT
        %{me}
        bundle exec %{me} --json

        Exit status: 0 if all is well, 1 if something is degraded or failing.
      TEXT

      # @return [Integer]
      def call(arguments)
        expect_none(arguments)
        diagnosis = Diagnosis.new
        puts @json ? json(diagnosis) : text(diagnosis)
        diagnosis.status == :ok ? 0 : 1
      end

      private

      def define_options(parser)
        parser.on("--json", "print JSON") { @json = true }
      end

      def text(diagnosis)
        width = diagnosis.checks.map { |check| check.name.size }.max
        checks = diagnosis.checks.map do |check|
          "#{check.status.to_s.ljust(8)}  #{check.name.ljust(width)}  #{check.text}"
        end
        ["ruby_memprofiler_pprof #{VERSION}, #{RUBY_DESCRIPTION}", "", *checks, "", *settings(diagnosis),
         "In all: #{diagnosis.status}"]
      end

      # Those that are not at their default.
      def settings(diagnosis)
        return [] unless diagnosis.configuration

        changed = described(diagnosis).reject { |_, setting| setting[:source] == :default }
        return [] if changed.empty?

        ["Settings from the environment:",
         *changed.map { |name, setting| "  #{name}: #{setting[:value]}" }, ""]
      end

      def described(diagnosis)
        configuration = diagnosis.configuration
        configuration.to_h.to_h do |name, value|
          [name, { value: shown(name, value), source: configuration.source(name) }]
        end
      end

      # Secrets are hidden.
      def shown(name, value)
        type = Configuration.find(name).type
        value && type.secret? ? type.show(value) : value
      end

      def json(diagnosis)
        require "json"
        JSON.pretty_generate(
          version: VERSION, ruby: RUBY_DESCRIPTION, status: diagnosis.status, checks: diagnosis.checks.map(&:to_h),
          facts: diagnosis.facts, settings: (described(diagnosis) if diagnosis.configuration)
        )
      end
    end
  end
end
