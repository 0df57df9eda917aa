# frozen_string_literal: true

# A collection at each allocation: it must never come at the wrong moment. The programs are small and have small heaps
# (no RubyGems; profiles are read here), since each step takes a thousand times as long; the whole suite would take
# days.
RSpec.describe MemprofilerPprof::Collector, "under GC.stress" do
  # The code's `result`. There, `stressed` runs a block under GC.stress, and `keep` allocates five Markers and as much
  # garbage. A process's first collector takes twenty times as long to start as others: unless the code needs it, it is
  # used up before, without stress.
  def result_of(code, first: false)
    outcome = run_ruby(<<~RUBY, options: %w[-W:no-experimental --disable-gems])
      class Marker
        def initialize = @text = "text \#{object_id}"
      end

      def stressed
        GC.stress = true
        yield
      ensure
        GC.stress = false
      end

      def keep(kept) = 5.times { Marker.new && kept << Marker.new }
      kept = []
      #{"new_collector.profile { nil }" unless first}
      #{code}
      $stdout.binmode.write(Marshal.dump(result))
    RUBY
    raise outcome.to_s unless outcome.success?

    Marshal.load(outcome.stdout.b) # rubocop:disable Security/MarshalLoad
  end

  # The number of Markers in profiles.
  def count(type, *profiles)
    profiles.sum { |bytes| Pprof.decode(bytes).by_class(type).fetch("Marker", 0) }
  end

  def counts_of(options, before_flush = "", first: false)
    profiles = result_of(<<~RUBY, first: first)
      profiles = stressed do
        collector = new_collector(sample_rate: 1.0, **#{options.inspect}).start
        keep(kept)
        first = collector.flush
        keep(kept)
        #{before_flush}
        collector.stop
        [first, collector.flush]
      end
      result = profiles.map(&:pprof_data)
    RUBY
    [count(:allocations, *profiles), count(:retained_objects, profiles.last)]
  end

  # The stack scan may keep one of the dead.
  [{ liveness: :freeobj }, { liveness: :mark_bits },
   { bt_method: :profile_frames }, { bt_method: :backtrace_locations },
   { object_class: true, object_age: true, pretty_backtraces: false }].each do |options|
    it "starts, samples, flushes and stops with #{options}" do
      expect(counts_of(options)).to match([20, be_between(10, 11)])
    end
  end

  it "starts the first collector of a process" do
    expect(counts_of({}, first: true)).to match([20, be_between(10, 11)])
  end

  it "follows objects that move", :liveness do
    expect(counts_of({}, "GC.compact")).to match([20, be_between(10, 11)])
  end

  it "stays within its bounds", :liveness do
    live = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0, max_heap_samples: 3)
      result = stressed do
        collector.start
        keep(kept)
        collector.flush
        collector.stats[:live_samples]
      end
    RUBY
    expect(live).to be <= 3
  end

  it "copes with methods and classes that are gone when it flushes", :liveness do
    profile = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      3.times do |number|
        passing = Class.new { eval("def call = Marker.new", nil, "passing\#{number}.rb") }
        kept << passing.new.call
        passing.send(:undef_method, :call)
      end
      result = stressed { collector.flush }.pprof_data
    RUBY
    expect(count(:retained_objects, profile)).to eq(3)
  end

  it "puts back what a flush had taken when an exception ends it", :liveness do
    ended, profile = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      keep(kept)
      ended = 5.times.count do |turns|
        going = Queue.new
        # Gets its turns when the flush yields the GVL.
        Thread.new { going.pop && turns.times { Thread.pass } && Thread.main.raise(IOError) }
        flushed = false
        begin
          stressed do
            going << true
            collector.flush(max_hold: 0.000001)
            flushed = true
            sleep
          end
        rescue IOError
          !flushed
        end
      end
      GC.start
      result = [ended, collector.flush.pprof_data]
    RUBY
    expect(ended).to be_positive
    expect(count(:retained_objects, profile)).to be_between(5, 6)
  end

  it "continues in forked children", :liveness do
    profile = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0).start
      keep(kept)
      reader, writer = IO.pipe
      pid = stressed do
        fork do
          keep(kept)
          profile = collector.flush
          GC.stress = false
          writer.binmode.write(profile.pprof_data)
        end
      end
      writer.close
      Process.wait(pid)
      result = reader.binmode.read
    RUBY
    expect([count(:allocations, profile), count(:retained_objects, profile)]).to match([10, be_between(10, 12)])
  end

  it "profiles threads and fibers", :liveness do
    profile = result_of(<<~RUBY)
      collector = new_collector(sample_rate: 1.0)
      profile = stressed do
        collector.start
        Array.new(3) { Thread.new { kept << Marker.new } }.each(&:join)
        fiber = Fiber.new { 2.times { Fiber.yield(kept << Marker.new) } }
        2.times { fiber.resume }
        collector.flush
      end
      result = profile.pprof_data
    RUBY
    expect(count(:retained_objects, profile)).to eq(5)
  end
end
