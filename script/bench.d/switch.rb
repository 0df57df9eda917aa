# frozen_string_literal: true

# Loaded into the server that script/bench_rails measures: executes commands from the socket SWITCH_SOCKET, so that one
# process can be measured with the profiler, with a hook that does nothing, and without.

require "empty_hooks"
require "json"
require "socket"
require "ruby_memprofiler_pprof"

# Switches the profiler.
class Switch
  COMMANDS = %w[on off hook unhook settle flush read].freeze

  def initialize(path)
    @collector = MemprofilerPprof::Collector.new(sample_rate: 0.01)
    @server = UNIXServer.new(path)
  end

  # Answers each line with a line of JSON.
  def serve
    connection = @server.accept
    while (command = connection.gets&.chomp)
      raise "what is #{command}?" unless COMMANDS.include?(command)

      connection.puts(JSON.generate(send(command)))
    end
  end

  private

  def on
    @collector.start
    @collector.stats
  end

  # The flush removes the last hook.
  def off
    @collector.stop.flush
    @collector.stats
  end

  # What any hook on allocations costs.
  def hook
    EmptyHooks.raw_newobj
  end

  def unhook
    EmptyHooks.raw_off
  end

  # One turn must not pay for what another leaves behind.
  def settle
    3.times { GC.start }
  end

  # Like a flusher.
  def flush
    MemprofilerPprof.without_profiling do
      profile = @collector.flush
      profile.write(File.join(ENV.fetch("SWITCH_FOLDER"), "shop.pprof"))
      { samples: profile.heap_samples_count, bytes: profile.pprof_data.bytesize }
    end
  end

  def read
    { cpu: Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID),
      megabytes: File.read("/proc/self/status")[/^VmRSS:\s*(\d+)/, 1].to_i / 1024 }
  end
end

path = ENV.delete("SWITCH_SOCKET")
Thread.new { Switch.new(path).serve }.report_on_exception = true if path
