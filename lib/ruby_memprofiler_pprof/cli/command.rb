# frozen_string_literal: true

require "optparse"

module MemprofilerPprof
  class CLI
    # What all commands have in common. A command has the constants SUMMARY (a line for the overview), USAGE (what
    # follows its name), DESCRIPTION and EXAMPLES, and the method #call; #define_options if it has options.
    class Command
      # @param invocation [String] how it was called, for messages: "memprofiler run"
      def initialize(invocation)
        @invocation = invocation
      end

      # @param arguments [Array<String>] what follows the command's name
      # @return [Integer] the exit status
      # @raise [Failure]
      def run(arguments)
        arguments = arguments.dup
        @help = false
        parse(arguments)
        return call(arguments) || 0 unless @help

        puts help
        0
      rescue OptionParser::ParseError => e
        raise Failure, "#{reason(e)}, see #{@invocation} --help"
      end

      # @return [String]
      def help
        <<~HELP
          Usage: #{[@invocation, self.class::USAGE].join(" ").strip}

          #{self.class::DESCRIPTION.chomp}

          #{parser.help.strip}

          Examples:
          #{self.class::EXAMPLES.gsub(/^(?=.)/, "  ").gsub("%{me}", @invocation).chomp}
        HELP
      end

      private

      def parser
        @parser ||= OptionParser.new("Options:", 30, "  ") do |parser|
          define_options(parser)
          parser.on("-h", "--help", "print this and exit") do
            @help = true
            parser.terminate
          end
        end
      end

      # Options end at the first argument that is no option: what follows may be another command and its options.
      def parse(arguments)
        parser.order!(arguments)
      end

      def define_options(_parser); end

      # @return [Numeric] the number, if it is in least..most
      def check(number, most, least = 1)
        return number if number.between?(least, most)

        raise OptionParser::InvalidArgument, "#{number.to_s.delete_suffix(".0")}, must be in #{least}..#{most}"
      end

      # @raise [Failure] if there are arguments where none are expected
      def expect_none(arguments)
        raise Failure, "unexpected argument #{arguments.first}, see #{@invocation} --help" unless arguments.empty?
      end

      # Finds out beforehand whether {#write_output} can write there: what takes long to record is not to be lost.
      # @param target [String, nil] as for {#write_output}; nil is a name that is still to be made
      # @param pattern [String, nil] of that name
      # @raise [Failure]
      def check_output(target, pattern = nil)
        return check_new(pattern) if target.nil? && pattern
        return if target.nil? || target == "-"
        raise Failure, "--output needs the name of a file" if target.empty?

        require "ruby_memprofiler_pprof/atomic_file"
        AtomicFile.check(target)
      rescue SystemCallError => e
        raise Failure, "#{target}: #{system_message(e)}"
      end

      def check_new(pattern)
        require "ruby_memprofiler_pprof/atomic_file"
        require "ruby_memprofiler_pprof/file_pattern"
        directory = File.dirname(FilePattern.new(pattern).expand)
        AtomicFile.check_directory(directory)
      rescue SystemCallError => e
        raise Failure, "#{directory}: #{system_message(e)}; --output names another file"
      rescue ArgumentError => e
        # There is no current directory.
        raise Failure, "#{e.message}; --output names another file"
      end

      # Writes to a file and prints its name.
      # @param target [String] the file, or - for stdout
      # @raise [Failure]
      def write_output(bytes, target)
        write_bytes(bytes, target)
        puts target unless target == "-"
      end

      # Writes to a file.
      # @param target [String] as for {#write_output}
      # @raise [Failure]
      def write_bytes(bytes, target)
        return $stdout.binmode.write(bytes) if target == "-"

        require "ruby_memprofiler_pprof/atomic_file"
        AtomicFile.write(target, bytes)
      rescue SystemCallError => e
        raise if e.is_a?(Errno::EPIPE)

        raise Failure, "#{target == "-" ? "stdout" : target}: #{system_message(e)}"
      end

      # Ruby's message ends with the function and the file's name.
      def system_message(error)
        error.message[/\A[^@]*[^@\s]/]
      end

      # Says on stderr what is no output of the command.
      def tell(message)
        CLI.tell(@invocation, message)
      end

      def reason(error)
        case error
        when OptionParser::InvalidOption
          option = error.args.first
          # "\nDid you mean?  first\n  second"
          near = error.additional&.call(option.sub(/\A--?/, "")).to_s[/\?\s+(\S+)/, 1]
          "unknown option #{option}#{", did you mean --#{near}?" if near}"
        when OptionParser::MissingArgument then "#{error.args.first} needs a value"
        else [error.message, allowed(error.args.first)].compact.join(", must be ")
        end
      end

      # @param option [String] with its dashes
      # @return [String, nil] the values that it has, if these can be listed
      def allowed(option)
        values = parser.top.long[option.delete_prefix("--")]&.pattern
        list(values.keys) if values.is_a?(Hash)
      end

      def list(values)
        "#{values[0...-1].join(", ")} or #{values.last}"
      end
    end
  end
end
