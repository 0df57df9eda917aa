# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Collector, "thread_names", :liveness, :moving, :threads do
  before do
    stub_const("Marker", Class.new)
    stub_const("KEPT", [])
  end

  def keep(count = 1) = count.times { KEPT << Marker.new }

  def in_thread(name, &block)
    Thread.new do
      Thread.current.name = name
      block.call
    end.join
  end

  # The number of live Markers for each set of labels.
  def counts(profile)
    markers = profile.samples.select { |sample| sample.labels["class"] == "Marker" }
    markers.group_by { |sample| sample.labels.except("class") }
           .transform_values { |samples| samples.sum { |sample| sample[:retained_objects] } }
  end

  it "are labels of what a thread allocates" do
    profile = profile_of(thread_names: true) do
      in_thread("one") { keep 1 }
      in_thread("two") { keep 2 }
    end
    expect(counts(profile)).to eq({ "thread" => "one" } => 1, { "thread" => "two" } => 2)
  end

  it "call the main thread main" do
    expect(counts(profile_of(thread_names: true) { keep 3 })).to eq({ "thread" => "main" } => 3)
  end

  it "have what is no UTF-8 replaced" do
    expect(counts(profile_of(thread_names: true) { in_thread("caf\xE9") { keep 3 } }))
      .to eq({ "thread" => "caf\uFFFD" } => 3)
  end

  it "are converted from other encodings" do
    expect(counts(profile_of(thread_names: true) { in_thread("café".encode("ISO-8859-1")) { keep 3 } }))
      .to eq({ "thread" => "café" } => 3)
  end

  it "are left out if a thread has none" do
    expect(counts(profile_of(thread_names: true) { in_thread(nil) { keep 3 } })).to eq({} => 3)
  end

  it "are left out unless requested" do
    expect(counts(profile_of { in_thread("one") { keep 3 } })).to eq({} => 3)
  end

  it "are combined with the labels of the program" do
    profile = profile_of(thread_names: true) do
      in_thread("one") { MemprofilerPprof.with_labels(a: 1) { keep 2 } }
    end
    expect(counts(profile)).to eq({ "thread" => "one", "a" => "1" } => 2)
  end

  it "work without the labels of the program" do
    profile = profile_of(thread_names: true, labels: false) do
      in_thread("one") { MemprofilerPprof.with_labels(a: 1) { keep 2 } }
    end
    expect(counts(profile)).to eq({ "thread" => "one" } => 2)
  end

  it "yield to a label of the program with the same key" do
    profile = profile_of(thread_names: true) do
      in_thread("one") { MemprofilerPprof.with_labels(thread: "mine") { keep 2 } }
    end
    expect(counts(profile)).to eq({ "thread" => "mine" } => 2)
  end

  it "remain on what outlives the thread" do
    collector = new_collector(sample_rate: 1.0, thread_names: true).start
    in_thread("gone") { keep 3 }
    profiles = Array.new(3) do
      GC.start
      Pprof.decode(collector.flush)
    end
    expect(profiles.map { |profile| counts(profile) }).to all(eq({ { "thread" => "gone" } => 3 }))
  end

  it "are those of the threads that fibers run in" do
    profile = profile_of(thread_names: true) do
      in_thread("one") { Fiber.new { keep 2 }.resume }
    end
    expect(counts(profile)).to eq({ "thread" => "one" } => 2)
  end

  it "are distinguished if a thread reuses the memory of one that has ended" do
    profile = profile_of(thread_names: true) do
      100.times { |number| in_thread("thread #{number}") { keep } }
    end
    expect(counts(profile)).to eq(Array.new(100) { |number| [{ "thread" => "thread #{number}" }, 1] }.to_h)
  end

  it "are on truncated stacks" do
    deeper = ->(depth) { depth.zero? ? keep : deeper.call(depth - 1) }
    profile = profile_of(max_frames: 10, thread_names: true) { in_thread("one") { deeper.call(50) } }
    expect(counts(profile)).to eq({ "thread" => "one" } => 1)
  end

  it "do not change their stacks' frames" do
    profile = profile_of(thread_names: true) { %w[one two].each { |name| in_thread(name) { keep } } }
    markers = profile.samples.select { |sample| sample.labels["class"] == "Marker" }
    expect(markers.map(&:frames).uniq.size).to eq(1)
  end

  %i[profile_frames backtrace_locations].each do |method|
    it "are on stacks read by #{method}" do
      profile = profile_of(bt_method: method, thread_names: true) { in_thread("one") { 3.times { keep } } }
      expect(counts(profile)).to eq({ "thread" => "one" } => 3)
    end
  end

  it "do not keep alive what threads hold while a flush collects garbage" do
    collector = new_collector(sample_rate: 1.0, thread_names: true).start
    20.times { |number| in_thread(number.to_s) { Thread.current[:marker] = Marker.new } }
    expect(counts(Pprof.decode(collector.flush(gc: true))).values.sum).to be <= 2
  end

  it "are the same if a flush collects garbage" do
    collector = new_collector(sample_rate: 1.0, thread_names: true).start
    in_thread("one") { MemprofilerPprof.with_labels(a: 1) { keep 2 } }
    in_thread(nil) { keep 3 }
    profiles = Array.new(2) { Pprof.decode(collector.flush(gc: true)) }
    expect(profiles.map { |profile| counts(profile) }).to all(eq({ { "thread" => "one", "a" => "1" } => 2, {} => 3 }))
  end

  it "keep a thread alive no longer than until the next flush" do
    collector = new_collector(sample_rate: 1.0, thread_names: true).start
    ids = Array.new(20) { |number| Thread.new { keep }.tap { |thread| thread.name = number.to_s }.join.object_id }
    2.times do
      collector.flush
      GC.start
    end
    alive = ObjectSpace.each_object(Thread).count { |thread| ids.include?(thread.object_id) }
    expect(alive).to be <= 1
  end
end
