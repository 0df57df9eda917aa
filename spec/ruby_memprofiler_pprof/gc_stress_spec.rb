# frozen_string_literal: true

# A collection at each allocation: no moment may be the wrong one. The programs are small, since each step takes a
# thousand times as long; the suite as a whole would take days so.
RSpec.describe MemprofilerPprof::Collector, "under GC.stress" do
  let(:reader) { File.expand_path("../support/pprof", __dir__) }

  # What the code puts into `result`. In it `stressed` runs a block under GC.stress, `keep` allocates ten Markers and as
  # much garbage, and `count` tells of Markers in profiles.
  def result_of(code, timeout: 180)
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental", "-r#{reader}"], timeout: timeout)
      class Marker
        def initialize = @text = "text \#{object_id}"
      end

      def stressed
        GC.stress = true
        yield
      ensure
        GC.stress = false
      end

      def keep(kept) = 10.times { Marker.new && kept << Marker.new }
      def count(type, *profiles) = profiles.sum { |profile| Pprof.decode(profile).by_class(type).fetch("Marker", 0) }
      kept = []
      #{code}
      $stdout.binmode.write(Marshal.dump(result))
    RUBY
    raise outcome.to_s unless outcome.success?

    Marshal.load(outcome.stdout.b) # rubocop:disable Security/MarshalLoad
  end

  def told_of(options, before_flush = "")
    result_of(<<~RUBY)
      profiles = stressed do
        collector = new_collector(sample_rate: 1.0, **#{options.inspect}).start
        keep(kept)
        first = collector.flush
        keep(kept)
        #{before_flush}
        collector.stop
        [first, collector.flush]
      end
      result = [count(:allocations, *profiles), count(:retained_objects, profiles.last)]
    RUBY
  end

  # The stack scan may keep one of the dead.
  [{ liveness: :freeobj }, { liveness: :mark_bits },
   { bt_method: :profile_frames }, { bt_method: :backtrace_locations },
   { object_class: true, object_age: true, pretty_backtraces: false }].each do |options|
    it "starts, samples, flushes and stops with #{options}" do
      expect(told_of(options)).to match([40, be_between(20, 21)])
    end
  end

  it "follows objects that move" do
    expect(told_of({}, "GC.compact")).to match([40, be_between(20, 21)])
  end

  it "keeps within its bounds" do
    live = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0, max_heap_samples: 5)
      result = stressed do
        collector.start
        keep(kept)
        collector.flush
        collector.stats[:live_samples]
      end
    RUBY
    expect(live).to be <= 5
  end

  it "survives methods and classes that are gone when it flushes" do
    told = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      3.times do |number|
        passing = Class.new { eval("def call = Marker.new", nil, "passing\#{number}.rb") }
        kept << passing.new.call
        passing.send(:undef_method, :call)
      end
      result = count(:retained_objects, stressed { collector.flush })
    RUBY
    expect(told).to eq(3)
  end

  it "gives back what a flush had taken that an exception ended" do
    counted = result_of(<<~RUBY)
      require "timeout"
      collector = new_collector(sample_rate: 1.0).start
      keep(kept)
      5.times do
        stressed { Timeout.timeout(0.02) { collector.flush } }
        break
      rescue Timeout::Error
        next
      end
      GC.start
      result = count(:retained_objects, collector.flush)
    RUBY
    expect(counted).to be_between(10, 11)
  end

  it "goes on in forked children" do
    counted = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      keep(kept)
      reader, writer = IO.pipe
      pid = stressed do
        fork do
          keep(kept)
          profile = collector.flush
          GC.stress = false
          writer.print count(:allocations, profile), " ", count(:retained_objects, profile)
        end
      end
      writer.close
      Process.wait(pid)
      result = reader.read.split.map(&:to_i)
    RUBY
    expect(counted).to match([20, be_between(20, 22)])
  end

  it "profiles threads and fibers" do
    counted = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0)
      profile = stressed do
        collector.start
        Array.new(3) { Thread.new { kept << Marker.new } }.each(&:join)
        fiber = Fiber.new { 2.times { Fiber.yield(kept << Marker.new) } }
        2.times { fiber.resume }
        collector.flush
      end
      result = count(:retained_objects, profile)
    RUBY
    expect(counted).to eq(5)
  end
end
