# frozen_string_literal: true

module TortureOom
  # A cgroup with a memory limit, below the one that this process is in; version 1 or 2, whichever has the controller.
  class Cgroup
    ROOT = "/sys/fs/cgroup"

    # @return [Boolean] whether this process can make one
    def self.available?
      !version.nil?
    end

    # @return [String, nil] "cgroup v1" or "cgroup v2"; nil if there can be none
    def self.version
      @version ||= new(64 << 20).then { |group| group.remove.version }
    rescue SystemCallError, ArgumentError
      nil
    end

    attr_reader :version

    # @param limit [Integer] bytes
    # @raise [SystemCallError] if it cannot be made
    def initialize(limit)
      @version, parent, file = place
      @path = File.join(parent, "memprofiler-oom-#{Process.pid}-#{Random.rand(1 << 32)}")
      Dir.mkdir(@path)
      File.write(File.join(@path, file), limit.to_s)
    rescue SystemCallError
      remove if @path && Dir.exist?(@path)
      raise
    end

    # Moves the calling process into it, and with it those that it forks.
    # @return [void]
    def enter
      File.write(File.join(@path, "cgroup.procs"), Process.pid.to_s)
    end

    # Kills what is left in it, and removes it.
    # @return [self]
    def remove
      File.readlines(File.join(@path, "cgroup.procs"), chomp: true).each { |pid| Process.kill(:KILL, Integer(pid)) }
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
      begin
        Dir.rmdir(@path)
      rescue Errno::EBUSY
        raise if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep(0.01)
        retry
      end
      self
    end

    private

    def place
      groups = File.readlines("/proc/self/cgroup", chomp: true).map { |line| line.split(":", 3) }
      if (first = groups.find { |_, controllers,| controllers.split(",").include?("memory") })
        ["cgroup v1", own(File.join(ROOT, "memory"), first.last), "memory.limit_in_bytes"]
      else
        ["cgroup v2", own(ROOT, groups.find { |number,| number == "0" }.to_a.last.to_s), "memory.max"]
      end
    end

    # In a container the path may be the host's: then its own cgroup is what is mounted.
    def own(mount, path)
      [File.join(mount, path), mount].find { |candidate| Dir.exist?(candidate) }.to_s
    end
  end
end
