# frozen_string_literal: true

require "delegate"
require "pathname"

RSpec.describe MemprofilerPprof::Configuration do
  def from(**variables)
    described_class.from_env(variables.transform_keys { |name| "RUBY_MEMPROFILER_PPROF_#{name}" })
  end

  it "sets nothing for an empty environment" do
    expect(from).to have_attributes(collector_options: {}, flusher_options: {}, unknown: [])
  end

  it "has neither signals nor a socket by default" do
    expect(from).to have_attributes(dump_on: nil, toggle_on: nil, socket: nil)
  end

  it "treats an empty variable as unset" do
    expect(from(SAMPLE_RATE: "", INTERVAL: " ")).to have_attributes(collector_options: {}, flusher_options: {})
  end

  it "gives the collector's settings their types" do
    configuration = from(SAMPLE_RATE: "0.5", SAMPLING: "windows", WINDOW_FRAME: "0.02", WINDOW_DUTY: "0.2",
                         MAX_SAMPLING_TIME: "0.01", MAX_HEAP_SAMPLES: "50_000", TRACK_ALLOCATIONS: "false",
                         BT_METHOD: "profile_frames", LIVENESS: "freeobj", MAX_FRAMES: "9", OBJECT_CLASS: "yes",
                         OBJECT_AGE: "1", LABELS: "off", THREAD_NAMES: "on", TRACK_PEAK: "on",
                         SAMPLE_TYPE_NAMES: "go", PRETTY_BACKTRACES: "no", SEED: "3", TAGS: "release=1.2, region=eu")
    expect(configuration.collector_options).to eq(
      sample_rate: 0.5, sampling: :windows, window_frame: 0.02, window_duty: 0.2, max_sampling_time: 0.01,
      max_heap_samples: 50_000, track_allocations: false, bt_method: :profile_frames, liveness: :freeobj,
      max_frames: 9, object_class: true, object_age: true, labels: false, thread_names: true,
      track_peak: true, sample_type_names: :go, pretty_backtraces: false, seed: 3,
      tags: { "release" => "1.2", "region" => "eu" }
    )
  end

  it "gives the flusher's settings their types" do
    configuration = from(PATTERN: "a b/%{pid}", INTERVAL: "1.5", PRIORITY: "-2", YIELD_GVL: "off",
                         PROACTIVELY_YIELD_GVL: "TRUE", MAX_HOLD: "0.001", MAX_DURATION: "5", GC: "yes", MIN_AGE: "3")
    expect(configuration.flusher_options).to eq(
      pattern: "a b/%{pid}", interval: 1.5, priority: -2, yield_gvl: false, proactively_yield_gvl: true,
      max_hold: 0.001, max_duration: 5.0, gc: true, min_age: 3
    )
  end

  it "reads decimal numbers only" do
    configuration = from(MAX_FRAMES: "010", SEED: "010", PRIORITY: "02")
    expect(configuration.collector_options.merge(configuration.flusher_options))
      .to eq(max_frames: 10, seed: 10, priority: 2)
  end

  it "takes variables for UTF-8 in any locale" do
    expect(from(TAGS: "pod=ö".dup.force_encoding(Encoding::US_ASCII)).collector_options).to eq(tags: { "pod" => "ö" })
  end

  it "reads the process's environment by default" do
    stub_const("ENV", { "RUBY_MEMPROFILER_PPROF_SEED" => "4", "SEED" => "5" })
    expect(described_class.from_env.collector_options).to eq(seed: 4)
  end

  it "lists unknown variables with the prefix" do
    expect(from(SAMPLERATE: "1", SEED: "1").unknown).to eq(["RUBY_MEMPROFILER_PPROF_SAMPLERATE"])
  end

  {
    SAMPLE_RATE: [%w[2 -0.1 nan x 1%], "a number from 0 to 1"],
    SAMPLING: [%w[sometimes], "one of auto, always, windows"],
    WINDOW_FRAME: [%w[0 0.0009 2 soon], "a number of seconds from 0.001 to 1"],
    WINDOW_DUTY: [%w[0 0.009 0.6 x], "a number from 0.01 to 0.5"],
    MAX_HEAP_SAMPLES: [%w[0 -1 1.5 many 16777215], "an integer from 1 to 16777214"],
    MAX_FRAMES: [%w[0 100001], "an integer from 1 to 100000"],
    MAX_STACK_BYTES: [%w[1048575 1099511627777], "an integer from 1048576 to 1099511627776"],
    TRACK_ALLOCATIONS: [%w[maybe 2], "true or false"],
    BT_METHOD: [%w[magic], "one of cfp, profile_frames, backtrace_locations"],
    LIVENESS: [%w[weakref], "one of auto, freeobj, mark_bits"],
    SAMPLE_TYPE_NAMES: [%w[rust], "one of ruby, go"],
    SEED: [%w[0.5 -1 a 18446744073709551616], "an integer from 0 to 18446744073709551615"],
    PRIORITY: [%w[low -4 4], "an integer from -3 to 3"],
    INTERVAL: [%w[0 -1 1e999 soon], "a number of seconds above 0"],
    MAX_HOLD: [%w[0 86401 quick], "a number of seconds above 0, at most 86400"],
    MIN_AGE: [%w[-1 old], "an integer from 0 to 4294967295"],
    KEEP_FILES: [%w[-1 many 1000001], "an integer from 0 to 1000000"],
    KEEP_DAYS: [%w[-1 week], "a number of days, or 0"],
    ENABLED: [%w[maybe 2], "true or false"],
    PATTERN: [["%{foo}", "a/"],
              "a file name, in which %{pid} %{hostname} %{isotime} %{unixtime} %{index} are filled in"],
    TAGS: [["a", "a=b,", "a=b,a=c", "1=a", "__a=b", "a=b=c", "a={b}", "a=b\tc", "a=#{"b" * 257}"],
           "tags such as release=1.2,region=eu: different names of letters, digits, _ and ., and values without " \
           ", = { } that are not empty"],
    PYROSCOPE_URL: [["ftp://x", "x", "http://", "http:// x"], "a URL with http or https, without user and password"],
    PYROSCOPE_APP_NAME: [["a b", "a{"], "letters, digits, _, ., - and /"],
    START_PAUSED: [%w[maybe], "true or false"],
    DUMP_ON: [%w[KILL EXIT VTALRM FOO 12 TERM SIGINT hup QUIT PIPE sigpipe],
              "a signal that can be handled, such as USR2, but not INT, TERM, HUP, QUIT (they end processes) or PIPE " \
              "(broken connections send it)"],
    TOGGLE_ON: [%w[STOP PIPE],
                "a signal that can be handled, such as USR2, but not INT, TERM, HUP, QUIT (they end processes) or " \
                "PIPE (broken connections send it)"],
    SOCKET: [["%{foo}", "a/"],
             "a file name, in which %{pid} %{hostname} %{isotime} %{unixtime} %{index} are filled in"],
    DUMP_ABOVE: [%w[much 0% 101% -1 1XB true 1e9 90 1000k 2000000T 2EiB] + ["9" * 400],
                 'a part of the limit such as "90%", bytes such as "1.5GiB", from 1MiB to 1EiB, or false']
  }.each do |name, (values, allowed)|
    values.each do |value|
      it "refuses #{name}=#{value}, and says what is allowed" do
        expect { from(name => value) }
          .to raise_error(ArgumentError, "RUBY_MEMPROFILER_PPROF_#{name} must be #{allowed}, got #{value.inspect}")
      end
    end
  end

  it "refuses text that is not valid, and names the variable" do
    expect { from(SAMPLE_RATE: "\xff") }
      .to raise_error(ArgumentError, 'RUBY_MEMPROFILER_PPROF_SAMPLE_RATE must be a number from 0 to 1, got "\xFF"')
  end

  it "shows no secrets" do
    expect { from(PYROSCOPE_AUTH_TOKEN: "my secret") }.to raise_error(ArgumentError, / without blanks, got \[hidden\]/)
    expect { from(PYROSCOPE_URL: "http://me:secret@x/a") }.to raise_error(ArgumentError, %r{got "http://\[hidden\]@x/a"})
    expect(from(PYROSCOPE_BASIC_AUTH: "me:secret").inspect).to include("pyroscope_basic_auth=[hidden]")
  end

  describe "the sources of a setting" do
    # A configuration in which some sources set the number of frames.
    def frames(environment: nil, **sources)
      configuration = environment ? from(MAX_FRAMES: environment.to_s) : from
      sources.reduce(configuration) { |result, (source, value)| result.merge(source, max_frames: value) }
    end

    it "are, in this order: argument, environment, configure, framework, default" do
      all = { environment: 2, framework: 4, configure: 3, argument: 1 }
      order = %i[argument environment configure framework]
      values = (0..4).map { |first| frames(**all.slice(*order.drop(first))) }
      expect(values.map(&:max_frames)).to eq([1, 2, 3, 4, 1000])
      expect(values.map { |value| value.source(:max_frames) }).to eq([*order, :default])
    end

    it "can be reset" do
      expect(frames(framework: 4, configure: 3).merge(:configure, max_frames: nil).max_frames).to eq(4)
    end

    it "become keywords, except the default" do
      configuration = from(SEED: "1").merge(:framework, interval: 5).merge(:configure, yield_gvl: false)
      expect(configuration).to have_attributes(
        collector_options: { seed: 1 }, flush_options: { yield_gvl: false },
        flusher_options: { yield_gvl: false, interval: 5 }
      )
    end

    it "do not modify the configuration they are applied to" do
      before = from
      before.merge(:configure, max_frames: 3)
      expect(before.max_frames).to eq(1000)
    end
  end

  describe "a value from Ruby code" do
    def check(**settings)
      from.merge(:configure, settings).to_h.slice(*settings.keys)
    end

    it "may have any equivalent form" do
      expect(check(tags: { region: :eu })).to eq(tags: { "region" => "eu" })
      expect(check(dump_on: :SIGUSR2, toggle_on: "TTIN", pattern: Pathname("a"), sample_rate: 1r, interval: 2))
        .to eq(dump_on: "USR2", toggle_on: "TTIN", pattern: "a", sample_rate: 1r, interval: 2)
    end

    it "may be convertible to a number, as ActiveSupport's durations are" do
      duration = Class.new(SimpleDelegator) { def is_a?(type) = super || __getobj__.is_a?(type) }
      expect(check(interval: duration.new(300))[:interval]).to eql(300.0)
    end

    {
      sample_rate: [2, "0.5", Float::NAN, Complex(1, 1), false], max_heap_samples: [0, 1.0, "5"],
      track_allocations: [1, "true"], bt_method: [:magic, "cfp"], seed: [-1, 1 << 64], interval: [0, Float::INFINITY],
      pattern: ["%{foo}", "", 3], dump_on: ["KILL", 12],
      tags: ["a=b", { a: 1 }, { "a b" => "c" }, { a: "1", "a" => "2" }]
    }.each do |keyword, values|
      values.each do |value|
        it "is refused if it is #{value.inspect} for #{keyword}" do
          allowed = described_class.find(keyword).type.allowed
          expect { check(keyword => value) }
            .to raise_error(ArgumentError, "#{keyword} must be #{allowed}, got #{value.inspect}")
        end
      end
    end
  end

  describe "a setting that does not exist" do
    {
      "read" => ->(configuration) { configuration.max_frame },
      "assigned" => ->(configuration) { configuration.max_frame = 1 }
    }.each do |what, attempt|
      it "has no accessor, and Ruby's error says so when it is #{what}" do
        expect { attempt.call(from.dup) }.to raise_error(NoMethodError, /undefined method .max_frame/)
      end
    end

    {
      "asked for" => ->(configuration) { configuration[:max_frame] },
      "merged" => ->(configuration) { configuration.merge(:configure, max_frame: 1) }
    }.each do |what, attempt|
      it "is reported with the most similar one, and all others, when it is #{what}" do
        expect { attempt.call(from) }
          .to raise_error(ArgumentError, /\Athere is no setting max_frame \(did you mean max_frames\?\); settings are/)
      end
    end

    it "is reported without another one where Ruby has no did_you_mean" do
      stub_const("DidYouMean", Module.new)
      expect { from[:max_frame] }.to raise_error(ArgumentError, /\Athere is no setting max_frame; settings are/)
    end

    it "may be part of a name" do
      expect { from[:rate] }.to raise_error(ArgumentError, /did you mean sample_rate\?/)
    end
  end

  it "can only be assigned to in a copy" do
    expect { from.max_frames = 1 }.to raise_error(FrozenError, /max_frames in a block of MemprofilerPprof.configure/)
    copy = from.dup
    copy.max_frames = 1
    expect(copy).to have_attributes(max_frames: 1, assigned: { max_frames: 1 })
  end

  it "allows what the collector allows, and no more" do
    described_class::COLLECTOR_SETTINGS.each do |setting|
      first, last = setting.type.allowed[/\Aan integer .*/].to_s.scan(/\d+/).map(&:to_i)
      next unless last

      [first, last].each { |value| new_collector(setting.keyword => value) }
      [first - 1, last + 1].each do |value|
        expect { new_collector(setting.keyword => value) }.to raise_error(ArgumentError, /#{setting.keyword}/)
      end
    end
  end

  it "names the collector's own defaults" do
    collector = new_collector
    settings = described_class::COLLECTOR_SETTINGS.reject { |setting| %i[seed tags].include?(setting.keyword) }
    actual = settings.to_h { |setting| [setting.name, collector.public_send(setting.keyword)] }
    expect(settings.to_h { |setting| [setting.name, setting.type.parse(setting.default)] })
      .to eq(actual.merge("LIVENESS" => :auto))
  end

  it "passes only options that a file flusher takes" do
    taken = MemprofilerPprof::FileFlusher.instance_method(:initialize).parameters.map(&:last)
    expect(described_class::FLUSHER_SETTINGS.map(&:keyword) - taken).to be_empty
  end

  it "passes all options of flush that are not specific to a single flush" do
    expect { new_collector.start.flush(unknown: 1) }.to raise_error(ArgumentError) { |error|
      keywords = error.message[/one of (.*), got/, 1].split(", ").map(&:to_sym)
      keywords -= %i[reader sample_type_names default_sample_type]
      expect(described_class::FLUSH_SETTINGS.map(&:keyword)).to match_array(keywords)
    }
  end

  it "names the file flusher's own defaults" do
    flusher = MemprofilerPprof::FileFlusher.new(FakeCollector.new)
    defaults = described_class::FLUSHER_SETTINGS.to_h { |setting| [setting.keyword, setting.default] }
    kept = %i[keep_files keep_days].to_h { |name| [name, flusher.instance_variable_get("@#{name}").to_s] }
    expect(defaults).to include(pattern: flusher.pattern, interval: flusher.interval.to_s, **kept)
  end
end
