# frozen_string_literal: true

require "ruby_memprofiler_pprof/opentelemetry"

RSpec.describe MemprofilerPprof::OpenTelemetry, :liveness, :moving, :stress, :threads do
  before do
    stand_in("OpenTelemetry")
    described_class.install
    stub_const("Marker", Class.new)
    stub_const("KEPT", [])
  end

  let(:trace) { OpenTelemetry::Trace }

  # A span with these ids. Whole numbers are shorter to write than Strings of 16 and 8 bytes.
  def span(trace_id = 1, span_id = 1, sampled: true, remote: false)
    ids = { trace_id: [0, trace_id].pack("Q>2"), span_id: [span_id].pack("Q>") }
    trace::Span.new(trace::SpanContext.new(**ids, trace_flags: trace::TraceFlags.new(sampled), remote: remote))
  end

  def in_span(*ids, **flags, &) = trace.with_span(span(*ids, **flags), &)

  def keep(count = 1) = count.times { KEPT << Marker.new }

  def markers(profile)
    profile.samples.select { |sample| sample.labels["class"] == "Marker" }
  end

  # The number of live Markers allocated in each span.
  def counts(profile, type: :retained_objects)
    markers(profile).group_by { |sample| sample.labels.values_at("trace_id", "span_id").map { |id| id&.to_i(16) } }
                    .transform_values { |samples| samples.sum { |sample| sample[type] } }
  end

  it "labels what a span allocates with its ids" do
    labels = markers(profile_of { in_span(0xab, 0xcd) { keep } }).first.labels
    expect(labels).to include("trace_id" => "#{"0" * 30}ab", "span_id" => "#{"0" * 14}cd")
  end

  it "labels nothing else" do
    profile = profile_of do
      keep 2
      in_span(1, 2) { keep 3 }
      keep 4
    end
    expect(counts(profile)).to eq([nil, nil] => 6, [1, 2] => 3)
  end

  it "returns to the outer span at the end of an inner one" do
    profile = profile_of do
      in_span(1, 2) do
        in_span(1, 3) { keep 3 }
        keep 2
      end
    end
    expect(counts(profile)).to eq([1, 3] => 3, [1, 2] => 2)
  end

  it "ends a span whose block raises" do
    profile = profile_of do
      in_span { raise ArgumentError }
    rescue ArgumentError
      keep
    end
    expect(counts(profile)).to eq([nil, nil] => 1)
  end

  it "ends a span that was not detached" do
    profile = profile_of do
      OpenTelemetry::Context.attach(trace.context_with_span(span))
      OpenTelemetry::Context.clear
      keep
    end
    expect(counts(profile)).to eq([nil, nil] => 1)
  end

  it "keeps fibers and threads apart" do
    profile = profile_of do
      fiber = Fiber.new do
        in_span(1, 2) do
          Fiber.yield
          keep 2
        end
      end
      in_span(1, 3) do
        fiber.resume
        Thread.new { keep 4 }.join
        keep 5
        fiber.resume
      end
    end
    expect(counts(profile)).to eq([1, 2] => 2, [nil, nil] => 4, [1, 3] => 5)
  end

  it "leaves out spans that are not sampled, and those of other processes" do
    profile = profile_of do
      in_span(sampled: false) { keep 1 }
      in_span(remote: true) { keep 2 }
    end
    expect(counts(profile)).to eq([nil, nil] => 3)
  end

  it "labels what has died, too" do
    profile = profile_of do
      in_span(1, 2) { 5.times { Marker.new } }
      GC.start
    end
    expect(counts(profile, type: :allocations)).to eq([1, 2] => 5)
  end

  it "remains on what is alive long after" do
    collector = new_collector(sample_rate: 1.0).start
    in_span(1, 2) { keep 3 }
    3.times do
      GC.start
      collector.flush
    end
    expect(counts(Pprof.decode(collector.flush))).to eq([1, 2] => 3)
  end

  it "adds to other labels" do
    profile = profile_of { MemprofilerPprof.with_labels(job: "A") { in_span { keep } } }
    expect(markers(profile).first.labels).to include("job" => "A", "span_id" => "#{"0" * 15}1")
  end

  # Under GC.stress labels_spec reads stacks in these ways.
  %i[profile_frames backtrace_locations].each do |method|
    it "labels stacks read by #{method}", stress: false do
      profile = profile_of(bt_method: method) { in_span(1, 2) { 3.times { keep } } }
      expect(counts(profile)).to eq([1, 2] => 3)
    end
  end

  it "labels nothing if the collector is configured so" do
    expect(counts(profile_of(labels: false) { in_span { keep } })).to eq([nil, nil] => 1)
  end

  # Under GC.stress these take minutes, and show no more than the others.
  describe "of many samples", stress: false do
    # 5,000 Markers, each in its own span, and half of them on one line, dead or alive.
    def many(count = 5000)
      count.times { |number| in_span(7, number + 1) { number.even? ? keep : Marker.new } }
      GC.start
    end

    # Enough for all spans, too, however late the VM collects them.
    let(:exact) { { max_heap_samples: 1_000_000 } }

    it "labels 1,000, and adds up the others" do
      samples = markers(profile_of(**exact) { many })
      labelled, others = samples.partition { |sample| sample.labels["span_id"] }
      # Others are allocated in spans, too: two for each.
      expect(labelled.size).to be_between(200, 1000)
      expect(others.size).to eq(2)
    end

    it "changes no total" do
      profile = profile_of(**exact) { many }
      sums = %i[allocations retained_objects].map { |type| markers(profile).sum { |sample| sample[type] } }
      # The machine stack may keep one alive.
      expect(sums).to match([5000, be_between(2500, 2510)])
    end

    it "has some of each flush" do
      collector = new_collector(sample_rate: 1.0).start
      spans = Array.new(3) do |round|
        2000.times { in_span(round + 1) { Marker.new } }
        GC.start
        counts(Pprof.decode(collector.flush), type: :allocations).keys.map(&:first)
      end
      expect(spans).to match([include(1), include(2), include(3)])
    end

    it "forgets them with the objects" do
      collector = new_collector(sample_rate: 1.0).start
      many
      KEPT.clear
      3.times do
        GC.start
        collector.flush
      end
      # The VM may keep some objects that were allocated in a span, too.
      expect(collector.stats).to include(exemplars: be < 50)
    end

    it "keeps no trace of replaced ones" do
      collector = new_collector(sample_rate: 1.0, **exact).start
      20_000.times { |number| in_span(1, number + 1) { keep } }
      2.times { collector.flush }
      expect(collector.stats).to include(exemplars: 1000, functions: be < 1200)
    end

    # Naming starts at 4,096 functions. Without classes, which would themselves show what has no name yet.
    it "releases code without a flush" do
      collector = new_collector(sample_rate: 1.0, object_class: false, **exact).start
      code = ->(*) { eval("keep", binding, __FILE__, __LINE__) }
      3000.times { |number| in_span(1, number + 1, &code) }
      until collector.stats[:namings].positive?
        50.times(&code)
        # Each sample gives the naming a little time.
        2000.times { +"" }
      end
      expect(collector.stats).to include(exemplars: be > 900, pinned_functions: be < 300)
    end

    # Calls the block by a different path for each number.
    def by_path_of(number, depth = 24, &)
      return yield if depth.zero?

      return tap { by_path_of(number, depth - 1, &) } if number[depth % 12].zero?

      by_path_of(number, depth - 1, &)
    end

    it "labels none that lose their stacks" do
      collector = new_collector(sample_rate: 1.0, max_stack_bytes: 1 << 20).start
      # Dead objects lose their stacks.
      3000.times do |number|
        in_span(1, number + 1) { by_path_of(number) { Marker.new } }
        GC.start if (number % 100).zero?
      end
      lost, = markers(Pprof.decode(collector.flush)).partition { |one| one.frames.first.name == "(stack not kept)" }
      expect(lost.map { |sample| [sample.labels["span_id"], sample.frames.size] }).to eq([[nil, 1]])
    end
  end

  it "returns what OpenTelemetry returns" do
    token = OpenTelemetry::Context.attach(trace.context_with_span(span))
    expect([token, OpenTelemetry::Context.detach(token), OpenTelemetry::Context.detach(token)]).to eq([1, true, false])
    expect(trace.with_span(span) { 5 }).to eq(5)
  end

  it "works if something else is used as a span" do
    stand_ins = [Object.new, trace::Span.new(Object.new), trace::Span.new(trace::SpanContext.new(trace_id: 1))]
    profile = profile_of { stand_ins.each { |stand_in| trace.with_span(stand_in) { keep } } }
    expect(counts(profile)).to eq([nil, nil] => 3)
  end

  it "refuses ids of any other length or kind" do
    ids = [["\1" * 15, "\1" * 8], ["\1" * 16, "\1" * 9], [1, 2], [nil, nil], [[], {}]]
    profile = profile_of do
      ids.each do |pair|
        MemprofilerPprof.enter_span(*pair)
        keep
      end
    end
    expect(counts(profile)).to eq([nil, nil] => 5)
  end

  describe ".install" do
    it "patches nothing if the profiler is switched off" do
      stand_in("OpenTelemetry")
      allow(MemprofilerPprof.profiler).to receive(:enabled?).and_return(false)
      described_class.install
      expect(OpenTelemetry::Context.singleton_class).not_to include(described_class::Contexts)
    end

    it "happens when the profiler starts, if OpenTelemetry is loaded" do
      expect(patched_by("MemprofilerPprof.start")).to eq("true\n")
    end

    it "happens at a later start if it was not loaded at the first" do
      expect(patched_by("MemprofilerPprof.start", before: "MemprofilerPprof.start")).to eq("true\n")
    end

    it "does not happen without a start, without labels, or without the profiler" do
      switched_off = %w[ENABLED LABELS].map do |name|
        patched_by("MemprofilerPprof.start", env: { "RUBY_MEMPROFILER_PPROF_#{name}" => "0" })
      end
      expect([patched_by("MemprofilerPprof.collector"), *switched_off]).to eq(["false\n"] * 3)
    end

    def patched_by(code, before: "", env: {})
      run_ruby(<<~RUBY, env: env).stdout
        #{before}
        require #{StandIns.path("opentelemetry").inspect}
        #{code}
        p OpenTelemetry::Context.singleton_class.ancestors.join.include?("Memprofiler")
      RUBY
    end
  end
end
