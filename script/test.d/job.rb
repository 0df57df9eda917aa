# frozen_string_literal: true

require "shellwords"

module TestRun
  # A process that tests something. Its output goes to a file, which is shown if it fails.
  class Job
    # The long and useless parts of Ruby's crash report: what was loaded, and where. CI truncates logs.
    NOISE = /^\h{8,}-\h{8,} [-r][-w][-x][ps] .*\n|^ +\d+ \S+\.(?:rb|so)\n/

    # @return [String] its display name
    attr_reader :name
    # @return [Float] how long it is expected to take
    attr_reader :expected
    # @return [Float] how long it took
    attr_reader :seconds
    # @return [Float] the CPU seconds of it and of the processes that it has waited for
    attr_reader :cpu
    # @return [Array<String>] the names of jobs that must have passed before, of those that run at all
    attr_reader :needs

    # @param name [String]
    # @param command [Array<String>]
    # @param expected [Numeric] seconds
    # @param needs [Array<String>] names of other jobs
    # @param light [Boolean] whether it mostly waits, so that another job may run beside it
    # @param urgent [Boolean] whether it does the more work the longer it takes, so that others are to wait for it
    # @param tail [Integer] how many of its last lines of output are shown if it passes
    def initialize(name, command, expected:, needs: [], light: false, urgent: false, tail: 0)
      @name = name
      @command = command
      @expected = expected
      @needs = needs
      @light = light
      @urgent = urgent
      @tail = tail
    end

    # @return [Boolean]
    def light?
      @light
    end

    # @param folder [String] an empty one, for its output
    def start(folder)
      @log = File.join(folder, "log")
      @began = now
      # A separate process group, so that nothing it started is left behind if it must be killed.
      @pid = Process.spawn(environment, *@command, chdir: Plan::ROOT, in: File::NULL, out: [@log, "w"],
                                                   err: %i[child out], pgroup: true)
      prefer if @urgent
    end

    # @return [Boolean] whether it has ended
    def ended?
      return true if @status

      before = reaped_cpu
      _, @status = Process.wait2(@pid, Process::WNOHANG)
      return false unless @status

      @seconds = now - @began
      @cpu = reaped_cpu - before
      true
    end

    # @return [Boolean] for one that has ended
    def passed?
      @status.success?
    end

    # @return [Boolean] whether something other than its examples is wrong
    def broken?
      !passed?
    end

    def kill
      Process.kill(:KILL, -@pid) if @pid && !@status
    rescue Errno::ESRCH
      nil
    end

    # @return [String] its output, without the noise
    def output
      File.read(@log, encoding: "UTF-8").scrub.gsub(NOISE, "")
    end

    # @return [String] its progress: the last line of output, if that has numbers of examples
    def status
      last = File.open(@log) do |log|
        log.seek([log.size - 300, 0].max)
        log.read.scrub.lines.last.to_s.strip
      end
      last.match?(%r{\d:\d\d  .*\d/\d}) ? "#{name}: #{last}" : name
    end

    # @return [String] the message if it has passed
    def success
      [format("%<name>s passed in %<seconds>.0f s", name: name, seconds: seconds),
       *output.lines(chomp: true).last(@tail)].join("\n")
    end

    # @return [String] the message if it has failed
    def failure
      "#{output}\n#{name} failed: #{@status}"
    end

    # @return [String] how to run it again
    def command_line
      @command.shelljoin
    end

    private

    # What is added to the environment.
    def environment
      {}
    end

    # Only root may.
    def prefer
      Process.setpriority(Process::PRIO_PROCESS, @pid, -10)
    rescue Errno::EACCES, Errno::EPERM
      nil
    end

    # The CPU seconds of all processes that were waited for.
    def reaped_cpu
      Process.times.then { |times| times.cutime + times.cstime }
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
