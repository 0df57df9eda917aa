# frozen_string_literal: true

require "tmpdir"

# For programs that `run_faulty` runs: what they do while there is a copy of them.
module BesideChild
  # Yields the process id of a copy, and ends the copy afterwards.
  # @return [Array(String, Float, Float, Integer, Integer)] what MemprofilerPprof::Faults.child returns
  def beside_child(**limits)
    Dir.mktmpdir do |folder|
      asker = Thread.new { faults.child(:wait, folder, **limits) }
      asker.report_on_exception = false
      begun = -> { File.size?(File.join(folder, "started")) }
      sleep 0.001 until begun.call || !asker.alive?
      yield File.read(File.join(folder, "started")).to_i, asker if begun.call
      FileUtils.touch(File.join(folder, "go"))
      asker.value
    end
  end

  # @return [Array<String>] the state of each child of this process, of whatever kind
  def children
    Dir.glob("/proc/[0-9]*/stat").filter_map do |file|
      _, state, parent = File.read(file).match(/.*\) (\S) (\d+)/).to_a
      state if parent.to_i == Process.pid
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end
  end

  # @return [Array<String>] the open files of this process
  def files
    Dir.children("/proc/self/fd").sort
  end

  # @return [String] the message of the error that the block raises
  def failure
    yield
    "none"
  rescue MemprofilerPprof::Error => e
    e.message
  end
end

TOPLEVEL_BINDING.receiver.extend(BesideChild)
