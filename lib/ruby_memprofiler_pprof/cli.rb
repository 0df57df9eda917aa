# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/command"
require "ruby_memprofiler_pprof/utf8"
require "ruby_memprofiler_pprof/version"

module MemprofilerPprof
  # The program `memprofiler`.
  #
  # To add a command: its name in COMMANDS, and a file of that name in cli/ with a {Command} of that name.
  # @api private
  class CLI
    # In the order in which the help has them.
    COMMANDS = %w[run top dump report diff leaks why memory flamegraph export attach detach record ps stack doctor
                  version help].freeze
    # The exit status when a command could not do its work, be it a wrong command line or a file that cannot be read.
    # 1 is left for what a command found: growth (`leaks --exit-code`), or a degraded installation (`doctor`).
    TROUBLE = 2
    # The exit status after Ctrl-C, as in a shell.
    INTERRUPTED = 130

    # Ends a command, with a message for stderr and an exit status.
    class Failure < StandardError
      attr_reader :status

      def initialize(message, status: TROUBLE)
        super(message)
        @status = status
      end
    end

    class << self
      # @param name [String] one of COMMANDS
      # @return [Class]
      def command(name)
        require "ruby_memprofiler_pprof/cli/#{name}"
        const_get(name.capitalize)
      end

      # @param name [String]
      # @return [void]
      # @raise [Failure] with the command that may have been meant, if there is none of that name
      def check(name)
        return if COMMANDS.include?(name)

        near = nearest(name)
        raise Failure, "unknown command #{name}, did you mean #{near}?" if near

        raise Failure, "unknown command #{name}, commands: #{COMMANDS.join(", ")}; to profile a program: run -- #{name}"
      end

      # Writes a message to stderr.
      #
      # Not by Kernel#warn, which says nothing while another thread loads JSON: that sets $VERBOSE to nil for a moment.
      #
      # @param speaker [String] the program, or the command
      # @param message [String]
      # @return [void]
      def tell(speaker, message)
        # Profiles that somebody else wrote, whose names are in messages, may contain commands to terminals.
        $stderr.write("#{speaker}: #{utf8(message).scrub.gsub(/[[:cntrl:]&&[^\n]]/, "?")}\n")
      end

      # @param text [String] an argument or the name of a file. In the locale C it is said to be US-ASCII, which equals
      #   nothing that is in a profile
      # @return [String] in UTF-8, or what is not that as bytes: it may name a file, and OptionParser takes it only so
      def utf8(text)
        utf8 = UTF8.text(text)
        utf8.valid_encoding? ? utf8 : text.b
      end

      # @param directory [String]
      # @param names [Array<String>] of files there
      # @return [Array<String>] as {utf8}, whatever encodings these have
      def paths(directory, names)
        names.map { |name| utf8(File.join(directory.b, name.b)) }
      end

      private

      # Not DidYouMean::SpellChecker, which finds no match for words as short as these.
      def nearest(name)
        return unless defined?(DidYouMean::Levenshtein)

        # A program's name is not to pass for a command's: puma is as near to dump as rnu is to run.
        alike = COMMANDS.select { |word| word[0] == name[0] }
        distance, near = alike.map { |word| [DidYouMean::Levenshtein.distance(name, word), word] }.min
        near if distance && distance <= 2
      end
    end

    # @param program [String] its name
    # @param command [String, nil] the only command that the program has, if it is not to take a command's name
    def initialize(program: "memprofiler", command: nil)
      @program = program
      @command = command
    end

    # @param arguments [Array<String>] of the command line
    # @return [Integer] the exit status
    def run(arguments)
      # What is written is UTF-8, whatever the default encodings are.
      [$stdout, $stderr].each { |stream| stream.set_encoding(Encoding::BINARY) }
      # What cannot be written is to be known before the process ends.
      dispatch(arguments.map { |argument| self.class.utf8(argument) }).tap { $stdout.flush }
    rescue Failure => e
      fail_with(e.message, e.status)
    rescue Errno::EPIPE
      # The reader, such as `head`, has closed the pipe.
      0
    rescue Interrupt
      INTERRUPTED
    rescue SystemCallError => e
      fail_with(e.message.sub(/\A(.+?)(?: @ \w+)? - <STDOUT>\z/, 'stdout: \1'))
    rescue LoadError => e
      # The native library, which says what to do, or a part of Ruby that is not installed.
      fail_with(e.message)
    rescue StandardError => e
      fail_with("#{e.message} (#{e.class}, #{e.backtrace&.first})")
    end

    private

    def fail_with(message, status = TROUBLE)
      self.class.tell(@program, message)
      status
    end

    def version
      puts "#{@program} #{VERSION}"
      0
    end

    def help
      self.class.command("help").new("#{@program} help").run([])
    end

    def dispatch(arguments)
      return version if %w[-v --version].include?(arguments.first)
      return help if @command.nil? && %w[-h --help].include?(arguments.first)
      return self.class.command(@command).new(@program).run(arguments) if @command

      name, *rest = arguments
      raise Failure, "no command given, see #{@program} --help" unless name

      self.class.check(name)
      self.class.command(name).new("#{@program} #{name}").run(rest)
    end
  end
end
