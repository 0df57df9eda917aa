# frozen_string_literal: true

RSpec.describe MemprofilerPprof::Configuration do
  def from(**variables)
    described_class.from_env(variables.transform_keys { |name| "RUBY_MEMPROFILER_PPROF_#{name}" })
  end

  it "sets nothing for an empty environment" do
    expect(from).to have_attributes(collector_options: {}, flusher_options: {}, unknown: [])
  end

  it "takes an empty variable for one that is not set" do
    expect(from(SAMPLE_RATE: "", INTERVAL: " ")).to have_attributes(collector_options: {}, flusher_options: {})
  end

  it "gives the collector's settings their types" do
    configuration = from(SAMPLE_RATE: "0.5", MAX_HEAP_SAMPLES: "50_000", TRACK_ALLOCATIONS: "false",
                         BT_METHOD: "profile_frames", LIVENESS: "freeobj", MAX_FRAMES: "9", OBJECT_CLASS: "yes",
                         OBJECT_AGE: "1", SAMPLE_TYPE_NAMES: "go", PRETTY_BACKTRACES: "no", SEED: "3")
    expect(configuration.collector_options).to eq(
      sample_rate: 0.5, max_heap_samples: 50_000, track_allocations: false, bt_method: :profile_frames,
      liveness: :freeobj, max_frames: 9, object_class: true, object_age: true, sample_type_names: :go,
      pretty_backtraces: false, seed: 3
    )
  end

  it "gives the flusher's settings their types" do
    configuration = from(FILE_PATTERN: "a b/%{pid}", INTERVAL: "1.5", PRIORITY: "-2", YIELD_GVL: "off",
                         PROACTIVELY_YIELD_GVL: "TRUE")
    expect(configuration.flusher_options).to eq(
      pattern: "a b/%{pid}", interval: 1.5, priority: -2, yield_gvl: false, proactively_yield_gvl: true
    )
  end

  it "reads decimal numbers only" do
    configuration = from(MAX_FRAMES: "010", SEED: "010", PRIORITY: "010")
    expect(configuration.collector_options.merge(configuration.flusher_options))
      .to eq(max_frames: 10, seed: 10, priority: 10)
  end

  it "reads the process's environment by default" do
    stub_const("ENV", { "RUBY_MEMPROFILER_PPROF_SEED" => "4", "SEED" => "5" })
    expect(described_class.from_env.collector_options).to eq(seed: 4)
  end

  it "lists variables with the prefix that mean nothing" do
    expect(from(SAMPLERATE: "1", SEED: "1").unknown).to eq(["RUBY_MEMPROFILER_PPROF_SAMPLERATE"])
  end

  {
    SAMPLE_RATE: [%w[2 -0.1 nan x 1%], "a number from 0 to 1"],
    MAX_HEAP_SAMPLES: [%w[0 -1 1.5 many], "an integer above 0"],
    TRACK_ALLOCATIONS: [%w[maybe 2], "true or false"],
    BT_METHOD: [%w[magic], "one of cfp, profile_frames, backtrace_locations"],
    LIVENESS: [%w[weakref], "one of auto, freeobj, mark_bits"],
    SAMPLE_TYPE_NAMES: [%w[rust], "one of ruby, go"],
    SEED: [%w[0.5 -1 a], "an integer from 0"],
    PRIORITY: [%w[low], "an integer"],
    INTERVAL: [%w[0 -1 1e999 soon], "a number of seconds above 0"],
    FILE_PATTERN: [["%{foo}", "a/"], "a file name, in which %{pid} %{isotime} %{unixtime} %{index} are filled in"]
  }.each do |name, (values, allowed)|
    values.each do |value|
      it "refuses #{name}=#{value}, saying what is allowed" do
        expect { from(name => value) }
          .to raise_error(ArgumentError, "RUBY_MEMPROFILER_PPROF_#{name} must be #{allowed}, got #{value.inspect}")
      end
    end
  end

  it "names the collector's own defaults" do
    collector = new_collector
    settings = described_class::COLLECTOR_SETTINGS.reject { |setting| setting.keyword == :seed }
    actual = settings.to_h { |setting| [setting.name, collector.public_send(setting.keyword)] }
    expect(settings.to_h { |setting| [setting.name, setting.type.parse(setting.default)] })
      .to eq(actual.merge("LIVENESS" => :auto))
  end

  it "sets only what a file flusher takes" do
    taken = MemprofilerPprof::FileFlusher.instance_method(:initialize).parameters.map(&:last)
    expect(described_class::FLUSHER_SETTINGS.map(&:keyword) - taken).to be_empty
  end

  it "names the file flusher's own defaults" do
    flusher = MemprofilerPprof::FileFlusher.new(FakeCollector.new)
    defaults = described_class::FLUSHER_SETTINGS.to_h { |setting| [setting.keyword, setting.default] }
    expect(defaults).to include(pattern: flusher.pattern, interval: flusher.interval.to_s)
  end
end
