# frozen_string_literal: true

# Runs what the README says to write; its sections on Rack and Pyroscope are run by readme_http_spec, those on RSpec and
# Minitest by testing_spec, that on the module API by module_api_spec.
RSpec.describe "README" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  # The Ruby in a section, block by block.
  def examples(heading)
    section = File.read(File.expand_path("../README.md", __dir__))[/^#{Regexp.escape(heading)}\n(.*?)(?=^##|\z)/m, 1]
    section.scan(/^```ruby\n(.*?)^```/m).flatten
  end

  def run(code)
    outcome = run_ruby("require 'ruby_memprofiler_pprof'\n#{code}")
    expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
    outcome.stdout
  end

  def frames(path)
    MemprofilerPprof::Profile.load(path).samples.flat_map { |sample| sample.stack.map(&:name) }.uniq
  end

  it "starts from the program's own code, and writes a file at exit" do
    configure, = examples("### Your own code")
    run("#{configure}\ndef work = Array.new(50_000) { Object.new }\nKEPT = work\nprint MemprofilerPprof.running?")
    expect(frames(Dir["tmp/profiles/*.pprof"].first)).to include("Object#work")
  end

  it "profiles a piece of code" do
    _, piece, = examples("### Your own code")
    run("def work = $kept = Object.new\n#{piece}")
    expect(frames("work.pb.gz")).to include("Object#work")
  end

  it "takes a profile from a collector" do
    *, collector = examples("### Your own code")
    run(collector.sub("# ... the program runs ...", "KEPT = Array.new(50_000) { Object.new }"))
    expect(frames("heap.pprof")).to include("<main>")
  end

  it "flushes to files" do
    files, = examples("### Periodically")
    run("#{files}\nKEPT = Array.new(50_000) { Object.new }")
    expect(frames(Dir["tmp/profiles/*.pprof"].first)).to include("<main>")
  end

  it "flushes to a block" do
    files, block = examples("### Periodically")
    bucket = "bucket = Class.new { def put(name, data) = File.binwrite(name, data) }.new"
    run("#{bucket}\n#{files.lines.first}\n#{block}\nKEPT = Array.new(50_000) { Object.new }")
    expect(frames(Dir["heap-*.pprof"].first)).to include("<main>")
  end

  it "labels" do
    code = examples("## Reading a profile").first
    output = run("def render = print(MemprofilerPprof.labels.to_a.inspect)\n#{code}")
    expect(output).to eq('[[:endpoint, "users#show"], [:tenant, "7"]]')
  end

  context "with two profiles" do
    before do
      kept = []
      collector = new_collector(sample_rate: 1.0).start
      %w[old new].each do |name|
        1000.times { kept << Object.new }
        collector.flush.write("#{name}.pprof")
      end
    end

    it "prints what has grown" do
      expect(run(examples("## Reading profiles in Ruby").first)).to match(/\A40000 .*#{__FILE__}:\d+$/)
    end

    it "draws a flame graph of what has grown" do
      run(examples("## Flame graph").first)
      expect(File.read("growth.html")).to include("<title>Growth").and include(File.basename(__FILE__))
    end
  end

  it "defines a rake task" do
    File.write("Rakefile", "#{examples("### Rake").first}task(:import) { KEPT = Array.new(50_000) { Object.new } }")
    outcome = run_command(RbConfig.ruby, *load_path_options, "-S", "rake", "import:profile")
    expect(outcome).to be_success, outcome.to_s
    expect(frames(Dir["tmp/profiles/*.pprof"].first)).to include("block in <top (required)>")
  end

  describe "on Rails", :rails do
    before(:context) do
      configure("")
      File.write("#{app}/config/initializers/memprofiler_pprof.rb", examples("### Rails").first)
      @answers = ask({ setup: "[MemprofilerPprof.config.interval, MemprofilerPprof.running?]", failures: <<~RUBY })
        $told = []
        Errors = Class.new { def report(error, handled:) = $told.push(error.message, handled) }
        Rails.define_singleton_method(:error) { Errors.new }
        #{examples("### Rails")[1]}
        ActiveSupport::Notifications.instrument("flush_failed.memprofiler_pprof", exception_object: IOError.new("full"))
        $told
      RUBY
    end

    it "sets the profiler up" do
      expect(@answers[:setup]).to eq([300, true]), @answers.to_s
    end

    it "reports failures" do
      expect(@answers[:failures]).to eq(["full", true]), @answers.to_s
    end
  end

  it "installs the middleware of Sidekiq" do
    skip "Sidekiq is not installed" unless UsableGems.include?("sidekiq")

    # Where Sidekiq 7, and 6, keep the middlewares of a server.
    config = "(Sidekiq.respond_to?(:default_configuration) ? Sidekiq.default_configuration : Sidekiq)"
    outcome = run_ruby("require 'sidekiq/cli'\n#{examples("### Rails").last}\n" \
                       "print #{config}.server_middleware.entries.map(&:klass)")
    expect(outcome.stdout).to include("MemprofilerPprof::Sidekiq::Middleware"), outcome.to_s
  end
end
