# frozen_string_literal: true

require "tmpdir"

RSpec.describe "docs/ruby-api.md" do
  def names_in(heading)
    Manual.names("docs/ruby-api.md", heading)
  end

  describe "its examples" do
    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    def run(code)
      outcome = run_ruby(code, gems: true)
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
      outcome.stdout
    end

    it "start and stop the profiler" do
      code, = Manual.ruby("docs/ruby-api.md", "Module API")
      run("#{code}\nMemprofilerPprof.start(sample_rate: 1)\nKEPT = Object.new\nMemprofilerPprof.stop")
      expect(Dir.glob("**/*.pb.gz")).to include("now.pb.gz", %r{\Atmp/app-\d+-\w+\.pb\.gz\z})
    end

    it "flush a reader of its own" do
      code, = Manual.ruby("docs/ruby-api.md", "flush")
      expect(run(code)[/1000 words, (\d+) objects/, 1].to_i).to be >= 1000
    end

    it "print what uses CPU time" do
      code, = Manual.ruby("docs/ruby-api.md", "CPU time")
      expect(run(code)).to match(/^\d+ ms Integer#to_s$/)
    end

    it "print what grew" do
      kept = []
      collector = new_collector(sample_rate: 1.0).start
      %w[old new].each do |name|
        1000.times { kept << Object.new }
        collector.flush.write("#{name}.pprof")
      end
      code, = Manual.ruby("docs/ruby-api.md", "Reading profiles in Ruby")
      expect(run(code)).to match(/\A40000 .*#{__FILE__}:\d+$/)
    end
  end

  it "has the methods of CPU" do
    internal = %i[after_fork configured]
    expect(names_in("CPU time")).to match_array(MemprofilerPprof::CPU.singleton_methods(false) - internal)
  end

  it "has the options of a collector" do
    collector = MemprofilerPprof::Collector.new
    expect(Manual.defaults("docs/ruby-api.md", "Collector.new"))
      .to eq(MemprofilerPprof::Collector::OPTIONS.to_h { |option| [option, collector.public_send(option).inspect] })
  end

  it "has the keywords of flush" do
    expect { new_collector.start.flush(unknown: 1) }.to raise_error(ArgumentError) { |error|
      expect(names_in("flush")).to match_array(error.message[/one of (.*), got/, 1].split(", ").map(&:to_sym))
    }
  end

  it "has the keywords of the flushers" do
    keywords = [MemprofilerPprof::FileFlusher, MemprofilerPprof::BlockFlusher].flat_map do |flusher|
      flusher.instance_method(:initialize).parameters.select { |kind, _| kind == :key }.map(&:last)
    end
    expect(names_in("FileFlusher.new, BlockFlusher.new")).to match_array(keywords.uniq)
  end

  it "has the functions of the module" do
    internal_or_elsewhere = %i[profiler enter_span forget_threads yield_deep collectors signal_handler
                               without_profiling with_labels labels memory_data muted? names_in]
    expect(names_in("Module API")).to match_array(MemprofilerPprof.singleton_methods(false) - internal_or_elsewhere)
  end

  it "has the methods of a profile" do
    methods = MemprofilerPprof::ProfileData.public_instance_methods(false) - %i[to_s inspect]
    expect(names_in("ProfileData")).to match_array(methods)
  end

  it "has the methods of the classes that read profiles" do
    section = Manual.section("docs/ruby-api.md", "Reading profiles in Ruby")
    type = MemprofilerPprof::Profile
    methods = type.included_modules.select { |mixin| mixin.name.start_with?(type.name) }.push(type)
                  .flat_map { |owner| owner.public_instance_methods(false) } + type.singleton_methods(false)
    missing = (methods - %i[to_s inspect]).reject { |method| section.match?(/[` .]#{Regexp.escape(method)}[`(]/) }
    expect(missing).to eq([])
  end

  it "has the figures in stats" do
    expect(names_in("stats")).to match_array(MemprofilerPprof::Collector.new.stats.keys)
  end
end
