# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    # What the commands that ask a running process for profiles have in common.
    module SourceOptions
      # The longest interval in seconds that a process accepts.
      LONGEST_INTERVAL = 60
      private_constant :LONGEST_INTERVAL

      private

      def define_header(parser)
        parser.on("--header TEXT", "a header for the endpoint, such as 'X-Token: 7',",
                  "or @FILE with such lines; may be repeated") do |text|
          headers(text).each { |header| add_header(header) }
        end
      end

      # From a file, so that no other user of the machine sees a token in the list of processes.
      def headers(text)
        return [text] unless text.start_with?("@")

        File.readlines(text.delete_prefix("@"), chomp: true).reject(&:empty?)
      rescue SystemCallError => e
        raise OptionParser::InvalidArgument, "#{text}: #{system_message(e)}"
      end

      def add_header(header)
        name, value = header.split(/:\s*/, 2)
        raise OptionParser::InvalidArgument, "#{header}, must be NAME: VALUE" if value.nil? || name.empty?
        raise OptionParser::InvalidArgument, "#{header.dump}, must be one line" if header.match?(/[\r\n]/)

        (@headers ||= {})[name] = value
      end

      # Yields the source at the only argument, and its address.
      # @param advice [String, nil] for who gives several
      # @raise [Failure] if there is not exactly one argument, or the process cannot be asked
      def with_source(addresses, advice: nil)
        # Loaded only here, since the overview of all commands does not need it.
        require "ruby_memprofiler_pprof/cli/source"
        unless addresses.size == 1
          got = "#{addresses.size}#{"; #{advice}" if advice && addresses.any?}"
          raise Failure, "exactly one PID, socket or URL is needed, got #{got}, see #{@invocation} --help"
        end

        yield Source.at(addresses.first, @headers || {}), addresses.first
      rescue Source::Unavailable => e
        raise Failure, "#{addresses.first}: #{e.message}"
      end
    end
  end
end
