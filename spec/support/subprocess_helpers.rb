# frozen_string_literal: true

require "open3"
require "rbconfig"
require_relative "wait_helpers"

# Runs Ruby code in its own process: for code that crashes, exits, forks or needs a fresh start.
module SubprocessHelpers
  LIB = File.expand_path("../../lib", __dir__)
  EXE = File.expand_path("../../exe", __dir__)
  EXECUTABLE = File.join(EXE, "memprofiler")
  PRELUDE = File.expand_path("subprocess/prelude", __dir__)
  # Ruby without RubyGems, which takes longer to load than everything else that most subprocesses do.
  RUBY = [RbConfig.ruby, "--disable-gems"].freeze
  # The command, likewise. Programs that it starts have RubyGems.
  MEMPROFILER = [*RUBY, EXECUTABLE].freeze

  Outcome = Struct.new(:stdout, :stderr, :status) do
    def success?
      status.success?
    end

    # What to show when an example fails.
    def to_s
      "#{status}\nstdout: #{stdout}\nstderr: #{stderr}"
    end
  end

  class TimedOut < StandardError; end

  # @param code [String] runs with the gem loaded, and has `new_collector`
  # @param env [Hash{String => String, nil}] added to the environment
  # @param args [Array<String>] the program's ARGV
  # @param options [Array<String>] Ruby's own options
  # @param gems [Boolean] whether the code needs RubyGems
  # @param keywords [Hash] chdir:
  # @return [Outcome]
  def run_ruby(code, env: {}, args: [], options: [], gems: false, **keywords)
    ruby = gems ? [RbConfig.ruby] : RUBY
    run_command(*ruby, *load_path_options, "-r#{PRELUDE}", *options, "-e", code, *args, env: env, **keywords)
  end

  # Runs a command in its own process group, which is killed as a whole if it hangs.
  # @return [Outcome]
  def run_command(*command, env: {}, chdir: Dir.pwd)
    Open3.popen3(own_environment.merge(env), *command, chdir: chdir, pgroup: true) do |stdin, stdout, stderr, waiter|
      stdin.close
      threads = [stdout, stderr].map { |io| Thread.new { io.read } } << waiter
      overdue = kill_overdue(threads, waiter.pid)
      outcome = Outcome.new(*threads.map(&:value))
      raise TimedOut, "#{command.inspect} took more than #{WaitHelpers::PATIENCE} s: #{outcome}" if overdue

      outcome
    end
  end

  # @return [Array<String>] Ruby options with which a subprocess finds the same libraries as this process
  def load_path_options
    paths = $LOAD_PATH.select { |path| Dir.exist?(File.join(path, "ruby_memprofiler_pprof")) }
    ([LIB] | paths).map { |path| "-I#{path}" }
  end

  private

  # Without what started this suite (Bundler, a wrapper) and without the gem's settings.
  def own_environment
    settings = ENV.keys.grep(/\ARUBY_MEMPROFILER_PPROF_/)
    ["RUBYOPT", *settings].to_h { |name| [name, nil] }
  end

  # @return [Boolean] whether there was something to kill
  def kill_overdue(threads, pid)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + WaitHelpers::PATIENCE
    done = threads.all? { |thread| thread.join([deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max) }
    return false if done

    Process.kill(:KILL, -pid)
    true
  rescue Errno::ESRCH
    true
  end
end
