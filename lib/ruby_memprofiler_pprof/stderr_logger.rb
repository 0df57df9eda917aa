# frozen_string_literal: true

module MemprofilerPprof
  # Where the gem's messages go when no logger is given: warnings and errors to stderr, the rest nowhere.
  #
  # Not the standard library's Logger: the wrapper loads this gem before the program's own `require "bundler/setup"`,
  # and requiring a default gem activates it, in a version that the program's Gemfile.lock may not want. For the same
  # reason nothing in the flushers requires fileutils, time, securerandom or the like.
  module StderrLogger
    class << self
      # @param message [String]
      # @return [void]
      def warn(message)
        write("WARN", message)
      end

      # @param message [String]
      # @return [void]
      def error(message)
        write("ERROR", message)
      end

      # Does nothing.
      # @return [void]
      def info(_message); end

      # Does nothing.
      # @return [void]
      def debug(_message); end

      private

      # One write, so that the lines of several threads and processes do not mix. A closed stderr is no reason to fail.
      def write(severity, message)
        time = Time.now.strftime("%Y-%m-%dT%H:%M:%S%:z")
        $stderr.write("#{severity} ruby_memprofiler_pprof [#{time} ##{Process.pid}] #{message}\n")
        nil
      rescue SystemCallError, IOError
        nil
      end
    end
  end
end
