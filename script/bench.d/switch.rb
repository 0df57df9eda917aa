# frozen_string_literal: true

# Loaded into the server that script/bench_rails measures: executes commands from the socket SWITCH_SOCKET, so that one
# process can be measured with each of the variants.

require "json"
require "socket"
require_relative "variants"

# Switches the variants.
class Switch
  COMMANDS = %w[variants on off settle flush read].freeze

  # @param resumed [Boolean] whether to measure windows that go on
  def initialize(path, resumed:)
    @variants = resumed ? Variants.new(:windows, keep: true) : Variants.new
    @server = UNIXServer.new(path)
  end

  # Answers each line with a line of JSON.
  def serve
    connection = @server.accept
    while (line = connection.gets)
      command, *arguments = line.split
      raise "what is #{command}?" unless COMMANDS.include?(command)

      connection.puts(JSON.generate(send(command, *arguments.map(&:to_sym))))
    end
  end

  private

  def variants
    @variants.names
  end

  def on(name)
    @variants.on(name)
  end

  def off(name)
    @variants.off(name)
  end

  # One turn must not pay for what another leaves behind.
  def settle
    3.times { GC.start }
  end

  # Like a flusher.
  def flush(name)
    before = Variants.cpu_nsecs
    MemprofilerPprof.without_profiling do
      @variants.collector(name).flush.write(File.join(ENV.fetch("SWITCH_FOLDER"), "shop.pprof"))
    end
    { cpu: (Variants.cpu_nsecs - before) / 1e9 }
  end

  def read
    { cpu: Variants.cpu_nsecs / 1e9,
      megabytes: File.read("/proc/self/status")[/^VmRSS:\s*(\d+)/, 1].to_i / 1024 }
  end
end

path = ENV.delete("SWITCH_SOCKET")
resumed = ENV.delete("SWITCH_RESUMED")
Thread.new { Switch.new(path, resumed: !resumed.nil?).serve }.report_on_exception = true if path
