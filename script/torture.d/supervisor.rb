# frozen_string_literal: true

require "rbconfig"
require "tmpdir"

module Torture
  # Starts the processes to torture, watches them and reports how they ended.
  class Supervisor
    WORKER = File.expand_path("worker.rb", __dir__)
    FATES = { 0 => "all is well", 1 => "WRONG", 2 => "CRASHED", 3 => "HANGS" }.freeze
    # How many lines of the log to show after a crash.
    HEAD = 80

    # How many of the machine's frames to show before.
    FRAMES = 25

    # One process.
    Victim = Struct.new(:pid, :seed, :log, :heartbeat, :status)

    # @return [Array<String>] the names of the kinds of trouble
    def self.kinds
      Dir[File.join(__dir__, "kinds", "*.rb")].map { |path| File.basename(path, ".rb") }.sort
    end

    def initialize(options)
      @options = options
      @options[:seed] ||= Random.new_seed % 1_000_000
    end

    # @return [Integer] the exit status
    def run
      Dir.mktmpdir("torture") do |folder|
        puts "#{RUBY_DESCRIPTION}\nseed #{@options[:seed]}"
        $stdout.flush
        victims = Array.new(@options[:processes]) { |number| start(folder, @options[:seed] + number) }
        victims.map { |victim| Thread.new { watch(victim) } }.each(&:join)
        victims.each { |victim| report(victim) }
        victims.map(&:status).max
      ensure
        victims&.each { |victim| kill(victim) }
      end
    end

    private

    def start(folder, seed)
      log = File.join(folder, "log#{seed}")
      heartbeat = File.join(folder, "heartbeat#{seed}")
      File.write(heartbeat, "the start\n")
      arguments = %i[seconds slice liveness only].filter_map do |name|
        ["--#{name}", Array(@options[name]).join(",")] if @options[name]
      end
      pid = spawn(RbConfig.ruby, WORKER, "--seed", seed.to_s, "--heartbeat", heartbeat, *arguments.flatten,
                  err: log, in: File::NULL, pgroup: true)
      Victim.new(pid, seed, log, heartbeat)
    end

    def watch(victim)
      loop do
        _, status = Process.wait2(victim.pid, Process::WNOHANG)
        return victim.status = status_of(status) if status
        break if Time.now - File.mtime(victim.heartbeat) > @options[:hang]

        sleep 0.1
      end
      backtraces(victim)
      kill(victim)
      Process.wait(victim.pid)
      victim.status = 3
    end

    def status_of(status)
      status.exited? && FATES.key?(status.exitstatus) && status.exitstatus != 2 ? status.exitstatus : 2
    end

    # Ruby's backtraces, if it still responds, then the machine's.
    def backtraces(victim)
      Process.kill(:QUIT, victim.pid)
      sleep 2
      File.open(victim.log, "a") do |log|
        system("gdb", "-p", victim.pid.to_s, "-batch", "-ex", "thread apply all bt 40", out: log, err: File::NULL)
      end
    end

    # Where the machine was when Ruby crashed, which Ruby tells only after much else.
    def machine_frames(lines)
      frames = lines.drop_while { |line| !line.start_with?("-- C level backtrace") }.drop(1)
      frames.take_while { |line| line != "\n" }.first(FRAMES).map do |line|
        nameless = line[/\(0x(\h+)\)/, 1]
        nameless ? place(lines, nameless.hex) : line[%r{[^/]*\(.*}].to_s[0, 150]
      end
    end

    # The file and the offset in it that are mapped at an address, by Ruby's map of the process.
    def place(lines, address)
      lines.each do |line|
        from, to, offset, path = line.match(/\A(\h+)-(\h+) \S+ (\h+) .* (\S+)$/)&.captures
        return format("%s+%#x", path, address - from.hex + offset.hex) if path && (from.hex...to.hex).cover?(address)
      end
      format("%#x", address)
    end

    # Together with everything that it forked.
    def kill(victim)
      Process.kill(:KILL, -victim.pid)
    rescue Errno::ESRCH
      nil
    end

    def report(victim)
      puts "seed #{victim.seed}: #{FATES.fetch(victim.status)}"
      return if victim.status.zero?

      puts "in #{File.read(victim.heartbeat)}again: script/torture --seed #{victim.seed} --slice N"
      lines = File.readlines(victim.log, encoding: "BINARY").map(&:scrub)
      from = lines.index { |line| line.match?(/\[BUG\]|\AIn a forked child|\ATorture::/) } || 0
      puts machine_frames(lines.drop(from)), lines[[from - 5, 0].max, HEAD]
      puts "… #{lines.size} lines in all" if lines.size > HEAD
    end
  end
end
