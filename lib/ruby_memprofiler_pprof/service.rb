# frozen_string_literal: true

module MemprofilerPprof
  # Whether this process is a server or a job runner, which runs for long: there `sampling: :auto` samples in windows.
  # {announce} is for code that only a server or job runner calls, {detect} goes by the command that runs.
  #
  # @!method self.announce
  #   Records that this process is one, and the children that it forks from now on.
  #   @return [void]
  # @!method self.announced?
  #   @return [Boolean] whether that was recorded
  # @api private
  module Service
    # Commands that are servers or job runners, whatever their arguments. Passenger is what it calls its processes.
    COMMANDS = %w[falcon good_job iodine karafka Passenger pitchfork puma rackup rainbows shoryuken sidekiq sidekiqswarm
                  sneakers thin unicorn unicorn_rails].freeze
    private_constant :COMMANDS

    class << self
      # Announces a process that runs one of these commands, also by `bundle exec`, or `rails server`.
      # @param program [String] its name: a path, or what a server has set, such as "unicorn master -D"
      # @param arguments [Array<String>]
      # @return [void]
      def detect(program = $PROGRAM_NAME, arguments = ARGV)
        announce if command?(program, arguments)
      end

      private

      def command?(program, arguments)
        # As bytes, since in the locale C a path may be no valid text. The program may have put anything into ARGV.
        name = program.to_s.b[%r{\A(?:[^ :]*/)?([^ :/]*)}, 1]
        first, second, = arguments
        case name
        when "bundle", "bundler" then first == "exec" && command?(second, arguments.drop(2))
        when "rails" then %w[server s].include?(first)
        else COMMANDS.include?(name)
        end
      end
    end
  end
end
