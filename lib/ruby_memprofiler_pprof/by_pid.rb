# frozen_string_literal: true

require "open3"

module MemprofilerPprof
  # Runs the tool that works on a process by its PID, without that one's help. It is a program of its own, as it shares
  # nothing with this Ruby, which may be another version than the process's.
  # @api private
  module ByPid
    # What the tool could not do, in its words.
    class Error < StandardError; end

    NAME = "memprofiler-attach"
    private_constant :NAME

    class << self
      # @param arguments [Array<#to_s>]
      # @return [String] what the tool printed, be it UTF-8 or a profile
      # @raise [Error]
      def run(*arguments)
        output, message, status = Open3.capture3(path, *arguments.map(&:to_s), binmode: true)
        return output.force_encoding(Encoding::UTF_8) if status.success?

        raise Error, message.empty? ? "#{NAME}: #{status}" : message.force_encoding(Encoding::UTF_8).chomp
      end

      # @return [String] where the tool is
      # @raise [Error] on other systems than Linux, or if it is not compiled
      def path
        raise Error, "this is for Linux only" unless RUBY_PLATFORM.include?("linux")

        # RubyGems may keep compiled files outside lib/.
        directories = [__dir__, *$LOAD_PATH.map { |directory| File.join(directory.to_s, "ruby_memprofiler_pprof") }]
        directories.map { |directory| File.join(directory, NAME) }.find { |file| File.executable?(file) } ||
          raise(Error, "the gem has no #{NAME}: run `rake compile`, or install the gem again")
      end
    end
  end
end
