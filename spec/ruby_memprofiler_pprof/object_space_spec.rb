# frozen_string_literal: true

# Outside garbage collections, ObjectSpace makes the collector mark what it refers to, and may allocate for each
# reference.
RSpec.describe MemprofilerPprof::Collector, "asked by ObjectSpace for its references", :liveness, :moving do
  it "allows objects to die and collections to run meanwhile" do
    outcome = run_ruby(<<~'RUBY')
      require "objspace"
      collector = new_collector(sample_rate: 1.0).start
      makers = Array.new(50) { |n| eval("-> { Class.new { def m#{n} = nil }.new }") }
      kept = makers.map(&:call)
      GC.stress = true
      direct = ObjectSpace.reachable_objects_from(collector)
      keepers = direct.grep(ObjectSpace::InternalObjectWrapper)
      code = keepers.flat_map { |keeper| ObjectSpace.reachable_objects_from(keeper) }
      GC.stress = false
      puts direct.grep(Class).size, code.size
    RUBY
    expect(outcome).to be_success, outcome.to_s
    expect(outcome.stdout.split.map(&:to_i)).to match([be > 50, be > 50])
  end

  it "allows dumping the heap" do
    outcome = run_ruby(<<~'RUBY')
      require "objspace"
      collector = new_collector(sample_rate: 1.0).start
      kept = Array.new(2000) { |n| eval("def self.m#{n} = Object.new; m#{n}") }
      dump = ObjectSpace.dump_all(output: :string)
      puts dump.scan(/"struct":"ruby_memprofiler_pprof keeper".*?"references":\[/).size
    RUBY
    expect(outcome).to be_success, outcome.to_s
    expect(outcome.stdout.to_i).to be > 4
  end
end
