# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "fileutils"
require "ruby_memprofiler_pprof"
require "ruby_memprofiler_pprof/by_pid/attachment"
require "socket"
require "tempfile"

# One program, to which it attaches.
class Trial
  PROGRAMS = File.join(__dir__, "programs")
  # Options of Ruby by program.
  OPTIONS = { "no_gems" => ["--disable-gems"] }.freeze
  # A file that does nothing, for tools that are killed.
  IDLE = "Thread.exit\n"
  # Seconds.
  LONGEST_LIFE = 0.012

  ByPid = MemprofilerPprof::ByPid

  # @return [Boolean] whether it can attach to processes here. Yama may want root, even for those of the same user
  def self.possible?
    scope = "/proc/sys/kernel/yama/ptrace_scope"
    RUBY_PLATFORM.match?(/x86_64-linux/) &&
      (Process.uid.zero? || !File.exist?(scope) || File.read(scope).to_i.zero?)
  end

  # @return [Array<String>] the programs that can run here
  def self.names
    names = Dir.children(PROGRAMS).map { |file| File.basename(file, ".rb") }.sort
    names -= %w[puma puma_worker] unless gem?("puma")
    names -= ["bundler"] unless gem?("bundler")
    names -= ["own_tmp"] unless own_tmp?
    names
  end

  def self.gem?(name)
    Gem::Specification.find_all_by_name(name).any?
  end
  private_class_method :gem?

  # Whether it may make namespaces, and the gem's files are not in the place that is replaced there.
  def self.own_tmp?
    !__dir__.start_with?("/tmp/") && system("unshare", "--mount", "true", %i[out err] => IO::NULL)
  end
  private_class_method :own_tmp?

  # @param name [String] of a program
  # @param random [Random]
  def initialize(name, random)
    @name = name
    @random = random
    @problems = []
    @attached = []
    @detached = []
  end

  # @param cycles [Integer] how often to attach and detach
  # @param kills [Integer] how many tools to kill
  # @return [Boolean] whether all is well
  def run(cycles, kills)
    start
    before = nil
    cycles.times do |turn|
      cycle
      # The first one loads libraries.
      before = footprint if turn == 1
      break unless alive?
    end
    compare(before) if before
    killed = kill_tools(kills)
    @problems << "it has ended" unless alive?
    report(cycles, killed)
  ensure
    stop
  end

  private

  def start
    @errors = Tempfile.new("torture_attach")
    @io = IO.popen([RbConfig.ruby, *OPTIONS[@name], File.join(PROGRAMS, "#{@name}.rb")], "r+",
                   err: @errors.path, pgroup: true)
    line = @io.gets or abort "#{@name} has not started: #{File.read(@errors.path)}"
    # Some name a child.
    @pid = line.match?(/\d/) ? Integer(line) : @io.pid
  end

  def stop
    Process.kill(:KILL, -@io.pid)
    @io.close
    @errors.close!
    FileUtils.rm_f("/tmp/memprofiler-#{@pid}.sock")
  end

  def cycle
    attachment = ByPid::Attachment.new(@pid, timeout: 60)
    @attached << attachment.start({ "RUBY_MEMPROFILER_PPROF_SAMPLE_RATE" => "0.05" })
    sleep(@random.rand(0.05))
    @detached << attachment.stop
  rescue ByPid::Error => e
    @problems << e.message
  end

  # Some are done before.
  # @return [Integer] how many were killed in the act
  def kill_tools(count)
    killed = 0
    (count * 5).times do
      break if killed == count || !alive?

      killed += 1 if kill_a_tool
    end
    killed
  end

  # @return [Boolean] whether it was killed in the act
  def kill_a_tool
    file = Tempfile.new(["torture_attach", ".rb"])
    file.write(IDLE)
    file.close
    tool = spawn(ByPid.path, "require", @pid.to_s, file.path, "5", %i[out err] => IO::NULL)
    sleep(@random.rand(LONGEST_LIFE))
    Process.kill(:KILL, tool)
    _, status = Process.wait2(tool)
    sleep(0.01)
    status.signaled?
  end

  def alive?
    !File.read("/proc/#{@pid}/stat").match?(/\) [ZX] /)
  rescue SystemCallError
    false
  end

  # What a program does itself with descriptors passes, and only adds to them.
  # @return [Hash{String => Integer}] how many descriptors of each kind it has at least
  def footprint
    readings = Array.new(20) { sleep(0.005) && descriptors }
    readings.flat_map(&:keys).to_h { |kind| [kind, readings.map { |reading| reading.fetch(kind, 0) }.min] }
            .select { |_, count| count.positive? }
  end

  def descriptors
    found = Dir.children("/proc/#{@pid}/fd").filter_map do |name|
      File.readlink("/proc/#{@pid}/fd/#{name}")[/[^\[]+/]
    rescue Errno::ENOENT
      nil
    end
    found.tally
  end

  # Ruby keeps native threads for some seconds, with their names.
  def threads
    Dir.glob("/proc/#{@pid}/task/*/comm").count do |file|
      File.read(file).start_with?("ruby_memprof")
    rescue SystemCallError
      # It has ended meanwhile.
      false
    end
  end

  def compare(before)
    100.times do
      return if footprint == before && threads.zero?

      sleep 0.1
    end
    @problems << "before #{before}, after #{footprint}, and #{threads} threads"
  end

  def report(cycles, killed)
    anomalies = File.read(@errors.path)
    @problems << anomalies unless anomalies.empty?
    judgement = @problems.empty? ? "well" : "#{@problems.size} PROBLEMS"
    puts "#{@name}: #{cycles} cycles, #{killed} tools killed: #{judgement}", *figures
    @problems.uniq.first(10).each { |problem| puts "  #{problem}" }
    $stdout.flush
    @problems.empty?
  end

  def figures
    all = @attached + @detached
    { "stopped" => all.flat_map(&:pauses), "reached" => all.map(&:reached), "attached" => @attached.map(&:loaded),
      "detached" => @detached.map(&:loaded) }.map { |title, seconds| "  #{title}: #{shares(seconds)}" }
  end

  def shares(seconds)
    sorted = seconds.sort
    { "median" => 0.5, "99 %" => 0.99, "most" => 1 }.map do |name, share|
      format("%<name>s %<value>.2f ms", name: name, value: sorted.fetch(((sorted.size - 1) * share).ceil, 0) * 1000)
    end.join(", ")
  end
end
