# frozen_string_literal: true

# Up to Ruby 3.4 the main Ractor's hooks are not told of garbage collections that other Ractors run, and the death of a
# Ractor object switches all hooks off (Bug #19112).
RSpec.describe MemprofilerPprof::Collector, "beside other Ractors" do
  affected = MemprofilerPprof::RactorGuard.needed?

  let(:reader) { File.expand_path("../support/pprof", __dir__) }

  # @return what the code puts into `result`, of a program with classes to count and methods to count them
  def result_of(code)
    outcome = run_ruby(<<~RUBY, options: ["-W:no-experimental", "-r#{reader}"])
      Early, Late, Foreign = Class.new, Class.new, Class.new
      def started = @started ||= new_collector(sample_rate: 1.0, max_heap_samples: 1_000_000).start
      def missed = started.stats[:missed_collections]
      def count(type, name) = Pprof.decode(started.flush).by_class(type).fetch(name, 0)
      # Ruby 4.0 has no Ractor#take.
      def finish(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
      #{code}
      $stdout.binmode.write(Marshal.dump(result))
    RUBY
    raise outcome.to_s unless outcome.success?

    Marshal.load(outcome.stdout.b) # rubocop:disable Security/MarshalLoad
  end

  context "when one of them collects garbage" do
    before { skip "on Ruby #{RUBY_VERSION} no collector runs beside a Ractor" if affected }

    # The Ractor is kept: its death has consequences of its own.
    let(:collected) do
      <<~RUBY
        started
        kept = Array.new(500) { Early.new }
        Array.new(1000) { Early.new }
        ractor = Ractor.new { 3.times { GC.start }; Ractor.main.send(:collected); Ractor.receive }
        Ractor.receive
      RUBY
    end

    it "notices what it was not told of", if: RUBY_VERSION < "4.0" do
      expect(result_of("#{collected}; started.flush; result = missed")).to be > 0
    end

    it "holds none of the dead alive" do
      # The conservative stack scan may keep one or two.
      expect(result_of("#{collected}; result = count(:retained_objects, 'Early')")).to be <= 510
    end

    it "keeps what it knows of allocations" do
      expect(result_of("#{collected}; result = count(:allocations, 'Early')")).to eq(1500)
    end

    it "counts exactly what is allocated afterwards" do
      expect(result_of(<<~RUBY)).to eq([1000, 1000])
        #{collected}
        started.flush
        late = Array.new(1000) { Late.new }
        result = [count(:retained_objects, "Late")]
        GC.start
        result << count(:retained_objects, "Late")
      RUBY
    end

    it "notices deaths of what is allocated afterwards" do
      expect(result_of(<<~RUBY)).to be <= 10
        #{collected}
        started.flush
        Array.new(1000) { Late.new }
        GC.start
        result = count(:retained_objects, "Late")
      RUBY
    end

    it "misses nothing where it is told of all", if: RUBY_VERSION >= "4.0" do
      expect(result_of(<<~RUBY)).to match([be_between(500, 510), 0])
        #{collected}
        GC.start
        result = [count(:retained_objects, "Early"), missed]
      RUBY
    end
  end

  context "when Ractor objects have been garbage-collected" do
    # The Ractors have ended before the collector starts, which is possible on every Ruby.
    let(:died) do
      <<~RUBY
        born = ObjectSpace::WeakMap.new
        begin_and_end = lambda do
          20.times do
            ractor = Ractor.new { 1 }
            finish(ractor)
            born[ractor] = true
          end
        end
        begin_and_end.call
        sleep 0.01 until Ractor.count == 1
        GC.disable
        started
        GC.enable
        GC.start
        raise "no Ractor has died" unless born.size < 20
      RUBY
    end

    it "samples again after the second flush" do
      expect(result_of(<<~RUBY)).to eq([500, 500])
        #{died}
        started.flush
        GC.start
        started.flush
        late = Array.new(500) { Late.new }
        profile = Pprof.decode(started.flush)
        result = %i[allocations retained_objects].map { |type| profile.by_class(type).fetch("Late", 0) }
      RUBY
    end

    it "samples again after the first flush, even if there was no other collection" do
      expect(result_of(<<~RUBY)).to eq(500)
        #{died}
        GC.disable
        started.flush
        late = Array.new(500) { Late.new }
        result = count(:retained_objects, "Late")
      RUBY
    end

    it "reads none of the dead whose deaths the same collection did not tell of" do
      expect(result_of(<<~RUBY)).to be <= 10
        #{died.sub("started\n", "started; early = Array.new(50_000) { Early.new }; early.clear\n")}
        result = count(:retained_objects, "Early")
      RUBY
    end

    it "holds none alive who died meanwhile" do
      expect(result_of(<<~RUBY)).to be <= 10
        #{died.sub("started\n", "started; early = Array.new(500) { Early.new }\n")}
        early.clear
        GC.start
        GC.start
        result = count(:retained_objects, "Early")
      RUBY
    end

    it "follows deaths again" do
      expect(result_of(<<~RUBY)).to be <= 10
        #{died}
        GC.start
        started.flush
        late = Array.new(500) { Late.new }
        late.clear
        GC.start
        result = count(:retained_objects, "Late")
      RUBY
    end

    it "does so for Ractors that began after the collector, too" do
      skip "on Ruby #{RUBY_VERSION} a Ractor that is created stops the collector" if affected
      expect(result_of(<<~RUBY)).to eq(500)
        started
        10.times { finish(Ractor.new { 1 }) }
        2.times { GC.start }
        started.flush
        GC.start
        started.flush
        late = Array.new(500) { Late.new }
        result = count(:retained_objects, "Late")
      RUBY
    end
  end

  context "when they only allocate" do
    before { skip "on Ruby #{RUBY_VERSION} no collector runs beside a Ractor" if affected }

    let(:allocated) do
      <<~RUBY
        started
        GC.disable
        early = Array.new(500) { Early.new }
        ractor = Ractor.new { Array.new(5000) { Foreign.new }; Ractor.main.send(:allocated); Ractor.receive }
        Ractor.receive
        GC.enable
      RUBY
    end

    it "is not alarmed" do
      expect(result_of("#{allocated}; GC.start; started.flush; result = missed")).to eq(0)
    end

    it "counts the main Ractor's own objects exactly" do
      expect(result_of("#{allocated}; GC.start; result = count(:retained_objects, 'Early')")).to eq(500)
    end
  end
end
