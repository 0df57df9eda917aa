# frozen_string_literal: true

require "ruby_memprofiler_pprof/delayed_job"
require "ruby_memprofiler_pprof/flamegraph"
require "ruby_memprofiler_pprof/opentelemetry"
require "ruby_memprofiler_pprof/pyroscope"
require "ruby_memprofiler_pprof/rack"
require "ruby_memprofiler_pprof/rails/options"
require "ruby_memprofiler_pprof/rake_task"
require "ruby_memprofiler_pprof/report"
require "ruby_memprofiler_pprof/resque"
require "ruby_memprofiler_pprof/retainers"
require "ruby_memprofiler_pprof/rspec"
require "ruby_memprofiler_pprof/sidekiq"

begin
  require "ruby_memprofiler_pprof/minitest"
rescue LoadError
  # The examples report that.
  nil
end

# The methods that really exist.
module RealMethods
  # Methods that could be called, but that only other parts of the gem call.
  INTERNAL = {
    "MemprofilerPprof" => %i[enter_span forget_threads memory_data muted? names_in profiler signal_handler yield_deep],
    "MemprofilerPprof::Atfork" => %i[around install remove],
    "MemprofilerPprof::Atfork::Handler" => %i[initialize],
    "MemprofilerPprof::BlockFlusher" => %i[abandon after_fork finish stopping],
    "MemprofilerPprof::Collector" => %i[after_fork before_ractor check_flush_options discard],
    "MemprofilerPprof::Configuration" => %i[initialize assigned find merge suggestion suggestion_for without
                                            writes_files?],
    "MemprofilerPprof::Configuration::Type" => %i[shown],
    "MemprofilerPprof::CPU" => %i[after_fork configured],
    "MemprofilerPprof::DelayedJob" => %i[name_of],
    "MemprofilerPprof::FileFlusher" => %i[continue file_pattern make_directory profiles],
    "MemprofilerPprof::Flamegraph" => %i[policy],
    "MemprofilerPprof::Memory" => %i[initialize ask of parse],
    "MemprofilerPprof::Memory::Limit" => %i[of],
    "MemprofilerPprof::Memory::Line" => %i[of],
    "MemprofilerPprof::OpenTelemetry" => %i[enter],
    "MemprofilerPprof::Profile::Estimate" => %i[of],
    "MemprofilerPprof::Pyroscope" => %i[after_fork exiting_since finish retire],
    "MemprofilerPprof::Reader" => %i[initialize],
    "MemprofilerPprof::Resque" => %i[name_of],
    "MemprofilerPprof::Retainers" => %i[initialize of],
    "MemprofilerPprof::Retainers::Holder" => %i[of],
    "MemprofilerPprof::Retainers::Largest" => %i[of],
    "MemprofilerPprof::Retainers::Link" => %i[list of],
    "MemprofilerPprof::Retainers::Site" => %i[of],
    "MemprofilerPprof::Retainers::Unreachable" => %i[of],
    "MemprofilerPprof::RSpec" => %i[install],
    "MemprofilerPprof::RSpec::AtMost" => %i[form explain met? warm_up_calls],
    "MemprofilerPprof::Testing" => %i[save],
    "MemprofilerPprof::Report" => %i[type],
    "MemprofilerPprof::Report::Totals" => %i[attached notes],
    "MemprofilerPprof::Report::Difference" => %i[retained?],
    "MemprofilerPprof::Report::Leaks" => %i[exits gainer notes rising section],
    "MemprofilerPprof::Report::Memory" => %i[section],
    "MemprofilerPprof::Report::MemoryGrowth" => %i[initialize gain],
    "MemprofilerPprof::Report::Retainers" => %i[section],
    "MemprofilerPprof::Report::Workers" => %i[section],
    "MemprofilerPprof::Report::Growth" => %i[initialize trend testable? p_value gain grows? lasts? late? highest?
                                             proven? settled? slowing? bent?],
    "MemprofilerPprof::Report::Style" => %i[paint]
  }.freeze
  # Module functions are private instance methods, too.
  MODULE_FUNCTIONS = { "MemprofilerPprof" => %i[collectors labels with_labels without_profiling] }.freeze

  module_function

  # Without the commands, which are no interface for Ruby.
  def modules(type = MemprofilerPprof)
    nested = (type.constants(false) - [:CLI]).map { |name| type.const_get(name) }.grep(Module)
    [type, *nested.flat_map { |inner| modules(inner) }]
  end

  def constants(type)
    type.constants(false).reject { |name| type.const_get(name).is_a?(Module) }
  end

  def instance_methods(type)
    names = type.public_instance_methods(false)
    # Struct members have setters, but these structs are frozen.
    names.reject! { |name| name.end_with?("=") } if structure?(type)
    names.concat(type.private_instance_methods(false) & [:initialize, *MODULE_FUNCTIONS[type.name]])
    (names - INTERNAL.fetch(type.name, [])).to_h { |name| [name, type.instance_method(name)] }
  end

  def singleton_methods(type)
    names = type.singleton_methods(false) - INTERNAL.fetch(type.name, [])
    names -= Struct.new(:member).singleton_methods(false) if structure?(type)
    names.to_h { |name| [name, type.method(name)] }
  end

  def parameters(method)
    kinds = method.parameters.group_by(&:first).transform_values { |list| list.map(&:last) }
    count = ->(kind) { kinds.fetch(kind, []).size }
    [count[:req], count[:opt], count[:rest], kinds.fetch(:keyreq, []).sort, kinds.fetch(:key, []).sort]
  end

  def structure?(type)
    type.is_a?(Class) && type < Struct
  end
end

RSpec.describe "The signatures", :own_process do
  before do
    skip "the gem rbs is not installed" unless UsableGems.include?("rbs")
    skip "the gem minitest cannot be loaded" unless defined?(MemprofilerPprof::Minitest)
  end

  # These have no signatures: see `@api private` in the code.
  rack = %w[Access Answers Cluster Cluster::Refusal Drain Drain::Sink FlamegraphPage Gate IndexPage LeaksPage
            MemoryPage MemoryQuery Page PageQuery Query Query::Invalid ReportPage RequestSummary
            RequestSummary::Outcome RequestSummary::Path RequestSummary::Table Response RetainersPage RetainersQuery
            StackText SummaryPage SummaryText]
         .map { |name| "Rack::#{name}" }
  pyroscope = %w[Client Client::Answer Deferred Delivery Series].map { |name| "Pyroscope::#{name}" }
  testing = %w[RSpec::ExampleChecks RSpec::CompoundBound RSpec::Ranking Testing::Cost Testing::BatchCounts
               Testing::ClassNames Testing::Frameworks Testing::LeakCheck Testing::Limit Testing::Measurement
               Testing::Report Testing::Sample Testing::Selection]
  report = %w[Births Counts DisplayWidth Document Json LargestText LeaksText Levels Markdown MemoryChange
              MemoryGrowthText MemoryText Note PathShortener Progress RetainersText Section SiteHolders SiteRest
              SiteText Statistics Table Table::Column Table::Row Text Trend Units View]
           .map { |name| "Report::#{name}" }
  socket = %w[Exchange Exchange::ClientLost Exchange::Refusal Listener].map { |name| "SocketServer::#{name}" }
  on_demand = %w[OnDemand OnDemand::LeakReport OnDemand::RecentProfiles OnDemand::Request SocketClient
                 SocketClient::NoAnswer]
  internal = (%w[AbandonedFiles Argument AtomicFile Atfork::Hooks BackgroundThread BlockEndings ByPid
                 ByPid::Error ByPid::Subject Configuration::Settable Configuration::Types CPU::Sampler CPUFiles
                 DefaultProfiler DelayedJob::Job Destinations Directories FileSeries Memory::Advisor Memory::Form
                 MemoryWatch OpenTelemetry::Contexts OwnLabels PeakFile PeriodicThread Profile::Source RactorGuard
                 RactorGuard::Windows RemoteControl Resque::Job Retainers::Recording Retainers::Reference RetainersFile
                 RunningFlushers RunNote Service Session SignalActions SocketServer Tags UTF8] +
              rack + pyroscope + report + socket + on_demand + testing)
             .map { |name| "MemprofilerPprof::#{name}" }
  # Loading this one profiles the process, so another process examines it.
  autostart = "MemprofilerPprof::Autostart"

  def expect_equal_parameters(signatures, methods)
    # The others are written in Rust.
    methods = methods.select { |_, method| method.source_location && method.owner.is_a?(Module) }
    expect(methods.to_h { |name, _| [name, signatures.fetch(name)] })
      .to eq(methods.transform_values { |method| RealMethods.parameters(method) })
  end

  it "are valid" do
    outcome = run_command(RbConfig.ruby, Gem.bin_path("rbs", "rbs"), "-I", Signatures::FILES, "validate")
    expect(outcome).to be_success, outcome.to_s
  end

  it "are those of all public modules" do
    real = RealMethods.modules.map(&:name) - internal
    expect(Signatures.modules).to match_array(real | [autostart])
  end

  (RealMethods.modules.map(&:name) - internal - [autostart]).each do |name|
    describe "of #{name}" do
      let(:type) { Object.const_get(name) }

      it "are those of its methods" do
        signatures = Signatures.instance_methods(name)
        methods = RealMethods.instance_methods(type)
        expect(signatures.keys).to match_array(methods.keys)
        expect_equal_parameters(signatures, methods)
      end

      it "are those of its singleton methods" do
        signatures = Signatures.singleton_methods(name)
        methods = RealMethods.singleton_methods(type)
        expect(signatures.keys).to match_array(methods.keys)
        expect_equal_parameters(signatures, methods)
      end

      it "are those of its constants" do
        expect(Signatures.constants(name)).to match_array(RealMethods.constants(type))
      end
    end
  end

  it "of #{autostart} are those of its methods" do
    # A wrong setting prevents it from starting anything.
    outcome = run_ruby("require 'ruby_memprofiler_pprof/autostart'; p #{autostart}.singleton_methods(false).sort",
                       env: { "RUBY_MEMPROFILER_PPROF_SAMPLE_RATE" => "2" })
    expect(outcome.stdout.chomp).to eq(Signatures.singleton_methods(autostart).keys.sort.inspect)
  end

  it "have the options of a collector" do
    expect(Signatures.keywords("MemprofilerPprof::Collector", :initialize))
      .to match_array(MemprofilerPprof::Collector::OPTIONS)
  end

  it "have the keywords of flush" do
    expect { new_collector.start.flush(unknown: 1) }.to raise_error(ArgumentError) { |error|
      allowed = error.message[/one of (.*), got/, 1].split(", ").map(&:to_sym)
      expect(Signatures.keywords("MemprofilerPprof::Collector", :flush)).to match_array(allowed)
    }
  end

  it "have the module by the gem's own name, too" do
    expect(Signatures.type_of("RubyMemprofilerPprof")).to eq("singleton(::MemprofilerPprof)")
  end
end
