# frozen_string_literal: true

require "ruby_memprofiler_pprof/utf8"

module MemprofilerPprof
  # What a program says on stderr at its end if `memprofiler run` has started it: which command shows its profiles.
  # @api private
  class RunNote
    # The environment variable with the id of the process that says so: what `run` has become, and not what that starts.
    VARIABLE = "MEMPROFILER_RUN"
    # How many profiles `leaks` needs to find what grows.
    SERIES = 8
    # The names that `leaks` finds in a directory.
    NAMES = /\.(?:pprof|pb\.gz|pb)\z/
    private_constant :SERIES, :NAMES

    # Has this process say it, if it is that one.
    # @param env [ENV, Hash{String => String}]
    # @return [void]
    def self.install(env = ENV)
      RunningFlushers.add_sink(new) if env[VARIABLE] == Process.pid.to_s
    end

    def initialize
      @pid = Process.pid
      @directory = UTF8.current_directory
    end

    # Called in a forked child, which says nothing.
    # @return [void]
    def after_fork; end

    # Called when the process exits, after the last profile was written.
    # @return [void]
    def finish
      return unless Process.pid == @pid

      profiler = MemprofilerPprof.profiler
      say(text(profiler.files)) if profiler.files.any?
      say("to see the CPU time: memprofiler report #{quote(profiler.cpu_files.last)}") if profiler.cpu_files.any?
    end

    private

    def say(text)
      $stderr.write("memprofiler run: #{text}\n")
    end

    def text(files)
      last = files.last
      if files.size >= SERIES && last.match?(NAMES)
        "to see what grows in #{files.size} profiles: memprofiler leaks #{quote(File.dirname(last))}"
      else
        "to see the #{"last " if files.size > 1}profile: memprofiler report #{quote(last)}"
      end
    end

    # For a shell, as short as it can be in the directory of the start. Without the library shellwords: see
    # {StderrLogger}.
    def quote(path)
      path = path.delete_prefix("#{@directory}/") if @directory
      path.match?(%r{\A[\w./%+:@,-]+\z}) ? path : "'#{path.gsub("'", "'\\\\''")}'"
    end
  end
end
