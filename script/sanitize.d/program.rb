# frozen_string_literal: true

# The program that script/sanitize runs: a little of everything that the extension does.

require "ruby_memprofiler_pprof"

KEPT = [] # rubocop:disable Style/MutableConstant
Node = Struct.new(:left, :right)

def work(depth = 20)
  return work(depth - 1) if depth.positive?

  1000.times { |i| KEPT << Node.new("text #{i}" * 10, [i]) << { i => Object.new } }
  Thread.new { 200.times { KEPT << Object.new } }.join
  Fiber.new { 200.times { KEPT << +"in a fiber" } }.resume
  eval("def passing = Array.new(100) { Object.new }", nil, __FILE__, __LINE__)
  KEPT.concat(passing)
  Object.undef_method(:passing)
end

def check(profile)
  read = MemprofilerPprof::Profile.load(profile.pprof_data)
  retained = read.total(:retained_objects).value
  raise "#{retained} retained objects, and #{KEPT.size} are kept" if retained < KEPT.size
end

OPTIONS = [{ liveness: :freeobj }, { liveness: :mark_bits, bt_method: :profile_frames },
           { object_class: true, object_age: true }].freeze
OPTIONS.each do |options|
  KEPT.clear
  collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, **options).start
  MemprofilerPprof.with_labels(step: "first") { work }
  check(collector.flush)
  KEPT.shift(KEPT.size / 2)
  GC.start
  GC.compact if GC.respond_to?(:compact)
  work
  Process.wait(fork { collector.flush && exit!(0) })
  raise "a forked child failed" unless $?.success? # rubocop:disable Style/SpecialGlobalVars

  check(collector.stop.flush)
end
