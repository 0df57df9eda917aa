# frozen_string_literal: true

require "fileutils"
require "tmpdir"

RSpec.describe MemprofilerPprof, :liveness, :moving do
  it "is also available under the gem's name" do
    expect(RubyMemprofilerPprof).to be(described_class)
  end

  it "can be started whatever names the program's variables have" do
    code = "new = plain = indexed = build = object = list = nil; p new_collector.start.stats[:walker_failure]"
    expect(run_ruby(code)).to have_attributes(stdout: "nil\n", stderr: "")
  end

  it "loads what serves profiles over HTTP when it is used, and not before" do
    outcome = run_ruby(<<~RUBY)
      loaded = -> { $LOADED_FEATURES.grep(%r{/uri\\.rb\\z|pprof/rack}).any? }
      print [loaded.call, MemprofilerPprof::Rack::Endpoint.new.class, MemprofilerPprof::Rack::Middleware, loaded.call]
    RUBY
    expect(outcome).to have_attributes(
      stdout: "[false, MemprofilerPprof::Rack::Endpoint, MemprofilerPprof::Rack::Middleware, true]", stderr: ""
    )
  end

  # Looking one up is a method call, in which threads may be switched: inside a lock that would be a deadlock.
  it "looks up its classes before it creates their objects" do
    outcome = run_ruby(<<~RUBY)
      looked_up = []
      Object.define_singleton_method(:const_get) { |name, *rest| looked_up << name && super(name, *rest) }
      profile = new_collector.start.flush.profile
      MemprofilerPprof::Profile.merge([profile, profile, profile])
      MemprofilerPprof.without_profiling { nil }
      print looked_up.grep(/Memprofiler/)
    RUBY
    expect(outcome).to have_attributes(stdout: "[]", stderr: "")
  end

  describe "in a program that Ruby warns" do
    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    # Uses most of the gem, and prints which files that has left.
    let(:code) { <<~RUBY }
      %w[flamegraph rack report socket_client].each { |part| require "ruby_memprofiler_pprof/\#{part}" }
      Cart = Struct.new(:cards)
      MemprofilerPprof.start(pattern: "a.pprof", socket: "a.sock", dump_on: "USR2", retainers_every: 1, sample_rate: 1)
      KEPT = MemprofilerPprof.with_labels(job: "x") { [Cart.new([Object.new]), { cart: Cart.new({ card: Object.new }) }] }
      profiles = [MemprofilerPprof.flush, MemprofilerPprof.profile { "x" * 99 }, MemprofilerPprof::CPU.profile { nil }]
      profiles.each { |profile| MemprofilerPprof::Report::Top.new(profile.profile).to_s }
      MemprofilerPprof::Flamegraph.new([profiles[0].profile]).to_html
      MemprofilerPprof::Report::Retainers.new(MemprofilerPprof.retainers).to_s
      MemprofilerPprof::Report::Memory.new(MemprofilerPprof.collector.memory).to_s
      MemprofilerPprof::SocketClient.new("a.sock").get("/heap", 60)
      endpoint = MemprofilerPprof::Rack::Endpoint.new(authorize: ->(_) { true })
      %w[/ /heap /report /flamegraph /leaks /retainers /memory].each do |path|
        status, = endpoint.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "QUERY_STRING" => "" })
        abort "\#{path}: \#{status}" unless status == 200
      end
      MemprofilerPprof.stop
      print Dir.children(".").sort.join(" ")
    RUBY

    it "gives no reason to" do
      expect(run_ruby(code, options: ["-w"])).to have_attributes(stdout: "a.pprof a.retainers.pprof", stderr: "")
    end

    it "runs as well if Ruby makes errors of some warnings" do
      expect(run_ruby(code, options: ["-d"])).to have_attributes(stdout: "a.pprof a.retainers.pprof", success?: true)
    end
  end

  describe "the extension" do
    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    # Where a precompiled gem has the library for this Ruby.
    let(:precompiled) { "ruby_memprofiler_pprof/#{RUBY_VERSION[/\d+\.\d+/]}/ruby_memprofiler_pprof" }

    # A copy of the Ruby files, without a library beside them.
    before do
      FileUtils.cp_r(Dir["#{SubprocessHelpers::LIB}/*.rb"], ".")
      Dir["#{SubprocessHelpers::LIB}/ruby_memprofiler_pprof/*.rb"].each do |file|
        write("ruby_memprofiler_pprof/#{File.basename(file)}", File.read(file))
      end
    end

    # Requires the copy.
    # @param compiled [Array<String>] options with which Ruby finds the compiled library
    def require_gem(*compiled)
      run_command(RbConfig.ruby, "-I.", *compiled, "-e", "require 'ruby_memprofiler_pprof'; print 'loaded'")
    end

    def write(file, content)
      FileUtils.mkdir_p(File.dirname(file))
      File.write(file, content)
    end

    it "is the one for this Ruby if it exists" do
      write("#{precompiled}.rb", "print 'precompiled '; require 'ruby_memprofiler_pprof/ruby_memprofiler_pprof'")
      expect(require_gem(*load_path_options).stdout).to eq("precompiled loaded")
    end

    it "is the only one otherwise" do
      expect(require_gem(*load_path_options)).to have_attributes(stdout: "loaded", stderr: "")
    end

    # It would search all gems.
    it "is not looked for where it is not" do
      tried = "module Kernel; alias_method :try, :require; def require(name) = $stderr.puts(name) || try(name); end"
      expect(require_gem(*load_path_options, "-e", tried).stderr.lines.grep(%r{/ruby_memprofiler_pprof$}))
        .to eq(["ruby_memprofiler_pprof/ruby_memprofiler_pprof\n"])
    end

    it "is not replaced by another if it cannot be loaded" do
      write("#{precompiled}.#{RbConfig::CONFIG["DLEXT"]}", "no library")
      expect(require_gem(*load_path_options))
        .to have_attributes(stdout: "", stderr: /#{precompiled}.* \(LoadError\).*--platform ruby/m)
    end

    it "if missing, raises an error that names the precompiled gem's Rubies, and the way out" do
      %w[2.10 2.9].each { |minor| FileUtils.mkdir_p("ruby_memprofiler_pprof/#{minor}") }
      expect(require_gem.stderr)
        .to include("is for Ruby 2.9, 2.10, and this is Ruby #{RUBY_VERSION}; `gem install ruby_memprofiler_pprof --pl")
    end

    it "if missing in a checkout, raises an error that names the command to build it" do
      expect(require_gem.stderr).to include("`rake compile`").and include("(LoadError)")
    end
  end
end
