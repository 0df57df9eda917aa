# frozen_string_literal: true

require "json"

# What a process says of where its memory is: in the extension's form, for examples of what is made of it.
module RecordedMemory
  MIB = 1_048_576
  # The bytes of each line, in MiB; nil where they are not known. Those that are known add up to the resident memory.
  FULL = { object_slots: 21.5, object_memory: 22.5, code: 44.75, free_slots: 32, allocator_free: 18, vm_memory: 29,
           transient_heap: 8, jit_code: 0, thread_stacks: 0.5, files_private: 1.25, files_shared: 16, profiler: 10,
           unexplained: 0.25 }.freeze
  QUICK = { **FULL, code: nil, vm_memory: FULL[:vm_memory] + FULL[:code] }.freeze
  SOURCES = { object_memory: "estimated", code: "estimated", vm_memory: "remainder", unexplained: "remainder" }.freeze
  SITE = "/srv/shop/app/services/product_card_cache.rb:11"

  module_function

  # @param mebibytes [Hash{Symbol => Numeric, nil}] by key, in place of those of FULL
  # @return [Array<Hash{Symbol => Object}>]
  def lines(**mebibytes)
    FULL.merge(mebibytes).map do |key, size|
      next unknown(key) unless size

      bytes = (size * MIB).round
      source = SOURCES.fetch(key, "exact")
      interval = key == :object_memory ? [(bytes * 0.9).round, (bytes * 1.1).round] : []
      { key: key, bytes: bytes, low: interval.first, high: interval.last, source: source, note: nil }
    end
  end

  # @param mebibytes [Hash{Symbol => Numeric, nil}] as for {lines}
  # @param changes [Hash{Symbol => Object}] of other members
  # @return [Hash{Symbol => Object}]
  def data(mebibytes = {}, **changes)
    lines = lines(**mebibytes)
    rss = lines.filter_map { |line| line[:bytes] }.sum
    { version: 1, pid: 4711, time: "2026-11-23T07:00:00Z", full: true, elapsed_nanoseconds: 46_300_000,
      rss_bytes: rss, peak_rss_bytes: rss + (9 * MIB), swap_bytes: 0, unexplained_bytes: lines.last[:bytes],
      shared_bytes: 15 * MIB, private_bytes: rss - (15 * MIB), allocator: "glibc 2.36",
      limit: { bytes: 300 * MIB, usage_bytes: 231 * MIB, kind: "cgroup v2" }, lines: lines,
      held_slots: [{ site: SITE, bytes: 29.75 * MIB, objects: 4000.0 },
                   { site: "/srv/shop/app/models/audit.rb:7", bytes: 1.0 * MIB, objects: 900.0 },
                   { site: "/srv/shop/app/models/user.rb:3", bytes: 13_312.0, objects: 60_000.0 }],
      empty_page_bytes: 65_536, copied_bytes: nil, **changes }
  end

  # Without `...`: with M:N threads Ruby 3.4 crashes in such calls, if the thread has changed to another native one
  # (`sendforward` of insns.def asks for the execution context by GET_EC, whose address the compiler keeps).
  # @return [String] what the extension returns
  def json(mebibytes = {}, **changes)
    JSON.generate(data(mebibytes, **changes))
  end

  # @return [MemprofilerPprof::Memory]
  def memory(...)
    MemprofilerPprof::Memory.parse(json(...)).first
  end

  # @return [Hash{Symbol => String}] what a profile says, for {Pprof::Maker}
  def comments(...)
    { memory: json(...) }
  end

  # Lets a collector, or the module, answer so, and records what it was asked.
  # @param process [MemprofilerPprof::Collector, Module]
  # @yield instead of an answer, if there is a block
  # @return [Array<Boolean>] for each question whether the heap was to be walked over
  def answer_of(process)
    asked = []
    process.define_singleton_method(:memory_data) do |full|
      asked << full
      next yield if block_given?

      RecordedMemory.json(full ? FULL : QUICK, pid: Process.pid, full: full)
    end
    process.singleton_class.send(:private, :memory_data)
    asked
  end

  def unknown(key)
    { key: key, bytes: nil, low: nil, high: nil, source: "unknown", note: "takes a walk over the heap" }
  end
  private_class_method :unknown
end
