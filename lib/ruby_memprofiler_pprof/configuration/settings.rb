# frozen_string_literal: true

require "ruby_memprofiler_pprof/configuration/type"

module MemprofilerPprof
  # The table of settings.
  class Configuration
    # What every variable's name begins with.
    PREFIX = "RUBY_MEMPROFILER_PPROF_"

    # Stands for the default of a setting that has none. It is not parsed: that would make it the name of a file.
    NONE = "none"
    private_constant :NONE

    # A setting: the name of its variable without the prefix, nil if only Ruby code can set it; the keyword by which
    # Ruby code knows it, the kind of value, the default as text, and what it is for.
    Setting = Struct.new(:name, :keyword, :type, :default, :purpose) do
      # @return [String, nil] the whole name of the variable; nil if only Ruby code can set it
      def variable
        PREFIX + name if name
      end

      # @return [String, nil] the long option of `memprofiler run`, likewise
      def option
        "--#{keyword.to_s.tr("_", "-")}" if name
      end

      # @return [Object, nil] the default as a value; nil if there is none, or chance decides
      def default_value
        type.parse(default) unless default == NONE
      end
    end

    # One table of the names, types, defaults and meanings of all settings: the accessors, the variables in the
    # environment, the options of the command line and the help are made from it. The defaults are those of the classes
    # that take the keywords, in writing.
    rate = Types.number("RATE", "a number from 0 to 1") { |value| value.between?(0, 1) }
    sampling = Types.one_of(:auto, :always, :windows)
    frame = Types.number("SECONDS", "a number of seconds from 0.001 to 1") { |value| value.between?(0.001, 1) }
    duty = Types.number("FRACTION", "a number from 0.01 to 0.5") { |value| value.between?(0.01, 0.5) }
    part = Types.number("FRACTION", "a number from 0.0001 to 1") { |value| value.between?(0.0001, 1) }
    seconds = Types.number("SECONDS", "a number of seconds above 0", &:positive?)
    up_to_a_day = Types.number("SECONDS", "a number of seconds above 0, at most 86400") do |value|
      value.positive? && value <= 86_400
    end
    days = Types.number("DAYS", "a number of days, or 0") { |value| value >= 0 }
    boolean = Types.boolean
    methods = Types.one_of(:cfp, :profile_frames, :backtrace_locations)
    liveness = Types.one_of(:auto, :freeobj, :mark_bits)
    samples = Types.integer(1..16_777_214)

    # Keywords of {Collector#initialize}.
    COLLECTOR_SETTINGS = [
      ["SAMPLE_RATE", :sample_rate, rate, "0.01", "fraction of allocations to sample"],
      ["SAMPLING", :sampling, sampling, "auto", "sample always, or in short windows at random times"],
      ["WINDOW_FRAME", :window_frame, frame, NONE, "seconds in each of which one window opens (0.03, or more)"],
      ["WINDOW_DUTY", :window_duty, duty, "0.03", "fraction of the time that windows are open"],
      ["MAX_SAMPLING_TIME", :max_sampling_time, part, "0.002", "fraction of the CPU time for samples in windows"],
      ["MAX_HEAP_SAMPLES", :max_heap_samples, samples, "50000", "most live samples to keep"],
      ["TRACK_ALLOCATIONS", :track_allocations, boolean, "true", "report allocations, not only live objects"],
      ["BT_METHOD", :bt_method, methods, "cfp", "how stacks are read"],
      ["LIVENESS", :liveness, liveness, "auto", "how deaths of objects are detected"],
      ["MAX_FRAMES", :max_frames, Types.integer(1..100_000), "1000", "frames to keep of each stack"],
      ["MAX_STACK_BYTES", :max_stack_bytes, Types.integer((1 << 20)..(1 << 40)), "67108864",
       "approximate limit for stored stacks, in bytes"],
      ["OBJECT_CLASS", :object_class, boolean, "true", "label samples with the object's class"],
      ["OBJECT_AGE", :object_age, boolean, "false", "label samples with the number of GCs survived"],
      ["LABELS", :labels, boolean, "true", "put the labels of with_labels on samples"],
      ["THREAD_NAMES", :thread_names, boolean, "false", "label samples with the thread's name"],
      ["TRACK_PEAK", :track_peak, boolean, "false", "keep what was alive at the peak of memory"],
      ["SAMPLE_TYPE_NAMES", :sample_type_names, Types.one_of(:ruby, :go), "ruby", "names of the sample types"],
      ["PRETTY_BACKTRACES", :pretty_backtraces, boolean, "true", "name methods Foo#bar rather than bar"],
      ["SEED", :seed, Types.integer(0..((1 << 64) - 1)), "random", "seed for reproducible sampling"],
      ["TAGS", :tags, Types.tags, NONE, "what profiles say of their process, such as release=1.2,region=eu"]
    ].map { |row| Setting.new(*row).freeze }.freeze

    # Keywords of {Collector#flush}, which the flushers take as well.
    FLUSH_SETTINGS = [
      ["YIELD_GVL", :yield_gvl, boolean, "true", "let other threads run while a profile is encoded"],
      ["PROACTIVELY_YIELD_GVL", :proactively_yield_gvl, boolean, "true",
       "let other threads run between slices of a flush"],
      ["GC", :gc, boolean, "false", "collect garbage before each profile"],
      ["MIN_AGE", :min_age, Types.integer(0..((1 << 32) - 1)), "0",
       "GCs to survive before an object counts as retained"],
      ["MAX_HOLD", :max_hold, up_to_a_day, "0.0005", "seconds to hold the GVL while another thread waits"],
      ["MAX_DURATION", :max_duration, up_to_a_day, "10", "seconds after which a flush stops yielding"]
    ].map { |row| Setting.new(*row).freeze }.freeze

    # Further keywords of {FileFlusher#initialize}.
    FLUSHER_SETTINGS = [
      ["PATTERN", :pattern, Types.pattern, "tmp/profiles/mem-%{pid}-%{isotime}.pprof", "where profiles go"],
      ["INTERVAL", :interval, seconds, "30", "seconds from one profile to the next"],
      ["KEEP_FILES", :keep_files, Types.integer(0..1_000_000), "100", "profiles to keep of a process; 0 keeps all"],
      ["KEEP_DAYS", :keep_days, days, "7", "days to keep profiles of ended processes; 0 keeps them"],
      ["RETAINERS_EVERY", :retainers_every, Types.integer(0..1_000_000), "0",
       "with each Nth profile, record who holds the heap; 0 never"],
      ["PRIORITY", :priority, Types.integer(-3..3), "0", "Thread#priority of the thread that writes profiles"],
      [nil, :on_flush, Types.callable, NONE, "called with each profile"]
    ].map { |row| Setting.new(*row).freeze }.freeze

    # CPU time, which is sampled beside the heap.
    CPU_SETTINGS = [
      ["CPU", :cpu, boolean, "false", "sample CPU time, too, and write it to files of its own"],
      ["CPU_FREQUENCY", :cpu_frequency, Types.integer(1..10_000), "100", "samples per second of CPU time"],
      ["CPU_PATTERN", :cpu_pattern, Types.pattern, "tmp/profiles/cpu/%{pid}-%{isotime}.pprof", "where these go"]
    ].map { |row| Setting.new(*row).freeze }.freeze

    url = Types.text("URL", %r{\Ahttps?://[^/?\s@]+(?:[/?]\S*)?\z},
                     "a URL with http or https, without user and password")
    app_name = Types.text("NAME", %r{\A[\w.\-/]+\z}, "letters, digits, _, ., - and /")

    # Where the profiles of the process go.
    DESTINATION_SETTINGS = [
      ["FILES", :files, boolean, NONE, "write profiles to files"],
      ["PYROSCOPE_URL", :pyroscope_url, url, NONE, "send profiles to this Pyroscope"],
      ["PYROSCOPE_APP_NAME", :pyroscope_app_name, app_name, NONE, "the service's name in Pyroscope"],
      ["PYROSCOPE_AUTH_TOKEN", :pyroscope_auth_token, Types.secret(/\A[[:graph:]]+\z/, "a bearer token without blanks"),
       NONE, "token for Pyroscope"],
      ["PYROSCOPE_BASIC_AUTH", :pyroscope_basic_auth, Types.secret(/\A[^:]+:/, "USER:PASSWORD"), NONE,
       "user and password for Pyroscope"],
      ["PYROSCOPE_TENANT_ID", :pyroscope_tenant_id, Types.text("ID", /\A[[:graph:]]+\z/, "an ID without blanks"), NONE,
       "tenant in Pyroscope"]
    ].map { |row| Setting.new(*row).freeze }.freeze

    # What concerns the process.
    PROCESS_SETTINGS = [
      ["ENABLED", :enabled, boolean, "true", "false switches the profiler off, whatever starts it"],
      ["START_PAUSED", :start_paused, boolean, "false", "do not sample until the toggle_on signal arrives"],
      ["DUMP_ON", :dump_on, Types.signal, NONE, "signal that writes a profile at once"],
      ["TOGGLE_ON", :toggle_on, Types.signal, NONE, "signal that stops and starts profiling"],
      ["SOCKET", :socket, Types.pattern, NONE, "Unix socket for top, dump, why, memory and curl"],
      ["DUMP_ABOVE", :dump_above, Types.memory, "90%", "memory above which a profile is written, of the cgroup's limit"]
    ].map { |row| Setting.new(*row).freeze }.freeze

    # @return [Array<Setting>] all of them
    def self.settings
      SETTINGS
    end

    SETTINGS = (COLLECTOR_SETTINGS + FLUSH_SETTINGS + FLUSHER_SETTINGS + DESTINATION_SETTINGS + CPU_SETTINGS +
                PROCESS_SETTINGS).freeze
    private_constant :SETTINGS
  end
end
