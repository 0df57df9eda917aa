# frozen_string_literal: true

require "pathname"
require "tmpdir"

# The arguments of a flush, and its result.
RSpec.describe MemprofilerPprof::ProfileData, :liveness, :moving, :threads do
  subject(:data) { collector.flush }

  let(:collector) { new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start }

  # Nobody else allocates its objects.
  before { stub_const("Thing", Class.new) }

  def allocate(count)
    Array.new(count) { Thing.new }
  end

  def objects(data, type)
    Pprof.decode(data).by_class(type).fetch("Thing", 0)
  end

  # How long the block takes, in nanoseconds.
  def nanoseconds
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start
  end

  describe "pprof_data" do
    it "is gzipped, binary and the same each time" do
      expect(data.pprof_data.encoding).to eq(Encoding::BINARY)
      expect(data.pprof_data.byteslice(0, 2)).to eq("\x1f\x8b".b)
      expect(data.pprof_data).to eq(data.pprof_data)
    end

    it "is not affected by changes to the String" do
      before = data.pprof_data.dup
      data.pprof_data << "x"
      expect(data.pprof_data).to eq(before)
    end
  end

  describe "heap_samples_count" do
    it "counts the live samples in the profile, including older ones" do
      @kept = [collector && allocate(100)]
      first = collector.flush
      @kept << allocate(50)
      second = collector.flush
      expect(second.heap_samples_count - first.heap_samples_count).to be_between(50, 80)
      expect(second.heap_samples_count).to eq(Pprof.decode(second).total(:retained_objects))
    end

    it "counts samples, not the objects they stand for" do
      collector.sample_rate = 0.1
      @kept = allocate(20_000)
      expect(data.heap_samples_count).to be_within(6 * Math.sqrt(20_000 * 0.1 * 0.9)).of(2000)
      expect(objects(data, :retained_objects)).to be > 15_000
    end

    it "does not count what is too young for min_age" do
      GC.disable
      collector
      @kept = allocate(100)
      expect(collector.flush(min_age: 1).heap_samples_count).to eq(0)
    ensure
      GC.enable
    end
  end

  describe "empty?" do
    it "is false of what has died, as it was allocated" do
      # Not on this machine stack, where remains would keep some alive; the first times fill the VM's caches.
      3.times do
        collector.flush
        Thread.new { [collector.start, allocate(100), collector.stop] && nil }.join
        GC.start
      end
      expect(data).not_to be_empty
    end

    it "is true if nothing was allocated, and nothing is alive" do
      expect(new_collector(sample_rate: 1e-9).start.flush).to be_empty
    end
  end

  describe "allocation_samples_count" do
    it "counts the live samples allocated since the last flush" do
      @kept = [collector && allocate(100)]
      collector.flush
      @kept << allocate(50)
      expect(data.allocation_samples_count).to be_between(50, 80)
    end

    it "is 0 if allocations are not tracked" do
      collector.track_allocations = false
      @kept = allocate(100)
      expect(data).to have_attributes(allocation_samples_count: 0, heap_samples_count: (be >= 100))
    end
  end

  describe "dropped_samples_heap_bufsize" do
    it "counts the samples removed because there were too many, since the last flush" do
      collector.max_heap_samples = 100
      @kept = allocate(1000)
      taken = collector.stats[:samples]
      expect(data.dropped_samples_heap_bufsize).to be_within(30).of(taken - data.heap_samples_count)
      expect(data.dropped_samples_heap_bufsize).to be > 100
      expect(collector.flush.dropped_samples_heap_bufsize).to be < 100
    end

    it "is 0 if there was enough room" do
      collector
      @kept = allocate(1000)
      expect(data.dropped_samples_heap_bufsize).to eq(0)
    end
  end

  describe "times" do
    before do
      collector
      @kept = allocate(20_000)
    end

    it "are all present, and within the time that the flush really took" do
      taken = nanoseconds { data }
      parts = %i[flush_duration_nsecs pprof_serialization_nsecs sample_add_nsecs longest_gvl_hold_nsecs
                 longest_gvl_hold_cpu_nsecs]
      expect(parts.map { |part| data.public_send(part) }).to all(be_between(1, taken))
    end

    # A flush, and its CPU time: no more than the sum of its parts, no matter who else uses the CPU.
    def flush(**options)
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      data = collector.flush(**options)
      [data, Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - before]
    end

    it "add up: a flush consists of converting samples and of writing them" do
      data, cpu = flush
      expect(data.sample_add_nsecs + data.pprof_serialization_nsecs).to be_between(cpu / 2, data.flush_duration_nsecs)
    end

    it "include the part without the GVL" do
      expect(data.sample_add_without_gvl_nsecs).to be_between(1, data.sample_add_nsecs)
    end

    it "have no part without the GVL if yield_gvl is false" do
      expect(collector.flush(yield_gvl: false).sample_add_without_gvl_nsecs).to eq(0)
    end

    it "show that the GVL was held all the time if it is never yielded" do
      data, cpu = flush(yield_gvl: false, proactively_yield_gvl: false)
      expect(data.longest_gvl_hold_nsecs).to be_between(cpu / 2, data.flush_duration_nsecs)
    end
  end

  # The profile, the number of collections and their total time.
  def flush_after_collecting
    # Nothing is left to sweep after this.
    GC.start
    before = [GC.count, GC.total_time]
    data = collector.flush(gc: true, yield_gvl: false, proactively_yield_gvl: false)
    [data, GC.count - before.first, GC.total_time - before.last]
  end

  it "leaves garbage collection out of the CPU time for which the GVL was held" do
    collector
    @kept = allocate(100_000)
    # A second collection, after the end of the flush, is not within the time for which it held the GVL.
    data, _, collecting = Array.new(10) { flush_after_collecting }.find { |_, collections| collections == 1 }
    expect(collecting).to be > 1_000_000
    expect(data.longest_gvl_hold_cpu_nsecs).to be_between(1, data.longest_gvl_hold_nsecs - collecting)
  end

  describe "gvl_proactive_yield_count" do
    # Enough work for several slices of half a millisecond.
    before do
      collector
      @kept = Array.new(30_000) { +"x" }
    end

    it "counts how often others were allowed to run, out of all checks" do
      # From Ruby 3.2 on the GVL is offered only if somebody waits for it.
      waits = false
      other = Thread.new { loop { waits = true } }
      Thread.pass until waits
      expect(data.gvl_proactive_yield_count).to be_between(1, data.gvl_proactive_check_yield_count)
    ensure
      other.kill.join
    end

    it "is 0, as are the checks, if proactively_yield_gvl is false" do
      data = collector.flush(proactively_yield_gvl: false)
      expect([data.gvl_proactive_yield_count, data.gvl_proactive_check_yield_count]).to eq([0, 0])
    end
  end

  describe "write" do
    around do |example|
      Dir.mktmpdir { |directory| Dir.chdir(directory, &example) }
    end

    it "writes the profile and returns its size" do
      expect(data.write("a.pprof")).to eq(data.pprof_data.bytesize)
      expect(File.binread("a.pprof")).to eq(data.pprof_data)
    end

    it "replaces an existing file, and takes a Pathname" do
      File.write("a.pprof", "x" * 100_000)
      data.write(Pathname("a.pprof"))
      expect(File.binread("a.pprof")).to eq(data.pprof_data)
    end

    it "creates a file that nobody else can read: a profile reveals the program's internals" do
      data.write("a.pprof")
      expect(File.stat("a.pprof").mode & 0o077).to eq(0)
    end

    it "raises the system's error if it cannot write" do
      expect { data.write("missing/a.pprof") }.to raise_error(Errno::ENOENT)
    end
  end

  describe "a flush" do
    it "collects garbage first if gc is true" do
      collector
      # Not on this machine stack, whose remains the VM may take for references.
      Thread.new { allocate(1000).size }.join
      expect(objects(collector.flush(gc: true), :retained_objects)).to be < 10
    end

    it "leaves objects younger than min_age out of what is retained, but not out of what was allocated" do
      GC.disable
      @kept = [collector && allocate(10)]
      2.times { GC.start }
      @kept << allocate(5)
      data = collector.flush(min_age: 2)
      expect(%i[retained_objects allocations].map { |type| objects(data, type) }).to eq([10, 15])
    ensure
      GC.enable
    end

    {
      { gc: 1 } => TypeError, { yield_gvl: nil } => TypeError, { proactively_yield_gvl: "x" } => TypeError,
      { min_age: 1.5 } => TypeError, { min_age: -1 } => ArgumentError, { min_age: 2**40 } => ArgumentError
    }.each do |keywords, error|
      it "raises #{error} for #{keywords.inspect}, with a message that helps, and loses nothing" do
        name, value = keywords.first
        collector
        allocate(10)
        allowed = /true or false|an Integer in 0\.\.\d+/
        expect { collector.flush(**keywords) }
          .to raise_error(error, /\A#{name} must be (#{allowed}), got #{Regexp.escape(value.inspect)}\z/)
        expect(objects(data, :allocations)).to eq(10)
      end
    end

    it "raises ArgumentError for an unknown keyword, naming the known ones" do
      expect { collector.flush(gcc: true) }.to raise_error(ArgumentError, /yield_gvl, .*gc, min_age.*:gcc/)
    end

    it "raises NotStartedError before the first start" do
      expect { new_collector.flush }.to raise_error(MemprofilerPprof::NotStartedError)
    end
  end

  it "has a to_s for people" do
    expect(data.to_s).to match(/#{data.heap_samples_count} live samples, #{data.pprof_data.bytesize} bytes, .* ms/)
    expect(data.inspect).to eq(data.to_s)
  end

  it "cannot be created directly" do
    expect { described_class.new }.to raise_error(TypeError)
  end
end
