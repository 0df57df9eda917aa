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
    # Bytes, at most, that are read at once.
    CHUNK = 65_536
    private_constant :NAME, :CHUNK

    class << self
      # @param arguments [Array<#to_s>]
      # @yieldparam tool [Process::Waiter] the tool, once it runs; it gets a signal that ends this meanwhile, and is
      #   waited for
      # @return [String] what the tool printed, be it UTF-8 or a profile; what it has to say of that goes to stderr
      # @raise [Error]
      def run(*arguments, &started)
        output, message, status = capture([path, *arguments.map(&:to_s)], started)
        raise Error, message.empty? ? "#{NAME}: #{status}" : message unless status.success?

        warn "memprofiler: #{message}" unless message.empty?
        output
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

      private

      # @return [Array(String, String, Process::Status)] stdout, a message, and how it ended
      def capture(command, started)
        Open3.popen3(*command) do |input, output, error, tool|
          started&.call(tool)
          input.close
          texts = texts_of(output, error)
          [texts.first, texts.last.chomp, tool.value]
        rescue SignalException
          terminate(tool)
          raise
        end
      end

      # Without threads: a second signal, as of a second Ctrl-C, may crash Ruby where it waits for other threads to
      # leave a pipe that it closes (up to 3.4: `rb_notify_fd_close_wait` keeps their list on its stack).
      # @return [Array<String>] all that comes from each pipe
      def texts_of(*pipes)
        texts = pipes.to_h { |pipe| [pipe.binmode, String.new] }
        until (open = pipes.reject(&:closed?)).empty?
          IO.select(open).first.each do |pipe|
            texts[pipe] << pipe.readpartial(CHUNK)
          rescue EOFError
            pipe.close
          end
        end
        texts.values.map { |text| text.force_encoding(Encoding::UTF_8) }
      end

      # It brings what it has begun to a good end.
      def terminate(tool)
        Process.kill(:TERM, tool.pid)
      rescue SystemCallError
        # It has ended, or runs as another user.
        nil
      end
    end
  end
end
