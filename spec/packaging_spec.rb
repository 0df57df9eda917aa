# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# What the gem consists of. `script/package` builds and installs it.
RSpec.describe "The gem" do
  subject(:gem_spec) { Gem::Specification.load(File.join(root, "ruby_memprofiler_pprof.gemspec")) }

  let(:root) { File.expand_path("..", __dir__) }
  let(:files) { gem_spec.files }

  # All files below directories of the checkout that end in one of some ways.
  def below(*directories, extension: "*")
    directories.flat_map { |directory| Dir.glob("#{directory}/**/*.#{extension}", base: root) }
               .select { |file| File.file?(File.join(root, file)) }
  end

  it "has exactly the files that it should have" do
    expect(files).to match_array(
      %w[.yardopts CHANGELOG.md Cargo.lock Cargo.toml IMPLEMENTATION.md LICENSE README.md
         exe/ruby_memprofiler_pprof_profile ext/memprofiler_core/Cargo.toml
         ext/ruby_memprofiler_pprof/Cargo.toml ext/ruby_memprofiler_pprof/build.rs
         ext/ruby_memprofiler_pprof/extconf.rb proto/pprof.proto] +
      below("lib", extension: "rb") + below("sig", extension: "rbs") +
      below("ext/memprofiler_core/src", "ext/ruby_memprofiler_pprof/src", extension: "rs")
    )
  end

  it "has nothing that is built, tests it or belongs to its making" do
    expect(files.grep(%r{\A(spec|script|rakelib|tmp|target|pkg)/|/(target|tests|benches|fuzz)/|\.(so|bundle|o|gem)\z}))
      .to eq([])
    expect(files.grep(/(Gemfile|Rakefile|\.lock)\z/)).to eq(["Cargo.lock"])
  end

  it "has files of which only the commands can be executed" do
    expect(files.select { |file| File.executable?(File.join(root, file)) })
      .to eq(gem_spec.executables.map { |name| "exe/#{name}" })
  end

  it "has the same files from wherever it is built" do
    elsewhere = run_ruby("print Gem::Specification.load(ARGV[0]).files.join(' ')", args: [gem_spec.loaded_from],
                                                                                   chdir: Dir.tmpdir)
    expect(elsewhere.stdout.split).to eq(files)
  end

  it "has all that cargo needs to read the workspace" do
    skip "cargo is not installed" unless system("cargo", "--version", out: File::NULL, err: File::NULL)

    Dir.mktmpdir do |directory|
      files.each do |file|
        FileUtils.mkdir_p(File.join(directory, File.dirname(file)))
        FileUtils.cp(File.join(root, file), File.join(directory, file))
      end
      outcome = run_command("cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version=1",
                            chdir: directory)
      expect(outcome).to be_success, outcome.stderr
      expect(outcome.stdout.scan(/"name":"(ruby_memprofiler_pprof|memprofiler_core)","version":"([^"]*)"/).uniq)
        .to contain_exactly(["memprofiler_core", MemprofilerPprof::VERSION],
                            ["ruby_memprofiler_pprof", MemprofilerPprof::VERSION])
    end
  end

  it "has a lock file for its own version" do
    locked = File.read(File.join(root, "Cargo.lock")).scan(/name = "(\w*memprofiler\w*)"\nversion = "([^"]*)"/).to_h
    expect(locked).to eq("memprofiler_core" => MemprofilerPprof::VERSION,
                         "ruby_memprofiler_pprof" => MemprofilerPprof::VERSION)
  end

  it "has complete metadata" do
    expect(gem_spec).to have_attributes(
      name: "ruby_memprofiler_pprof", version: Gem::Version.new(MemprofilerPprof::VERSION), licenses: ["Apache-2.0"],
      required_ruby_version: Gem::Requirement.new(">= 3.1"), require_paths: include("lib"),
      executables: ["ruby_memprofiler_pprof_profile"], extensions: ["ext/ruby_memprofiler_pprof/extconf.rb"],
      homepage: start_with("https://"), summary: be_a(String), description: be_a(String), authors: [be_a(String)]
    )
    expect(gem_spec.metadata).to match(
      "bug_tracker_uri" => start_with(gem_spec.homepage), "changelog_uri" => end_with("/CHANGELOG.md"),
      "documentation_uri" => end_with("/README.md"), "source_code_uri" => start_with(gem_spec.homepage),
      "rubygems_mfa_required" => "true"
    )
  end

  it "depends on no other gem" do
    expect(gem_spec.dependencies).to eq([])
  end

  it "asks for the same Rust in its manifest and when it is installed" do
    manifest = File.read(File.join(root, "Cargo.toml"))[/^rust-version = "(.*)"/, 1]
    expect(File.read(File.join(root, "ext/ruby_memprofiler_pprof/extconf.rb"))[/^RUST_VERSION = "(.*)"/, 1])
      .to eq(manifest)
  end

  it "has its changes listed" do
    expect(File.read(File.join(root, "CHANGELOG.md"))).to include("\n## #{MemprofilerPprof::VERSION}")
  end

  it "describes the messages that the specs decode" do
    text = File.read(File.join(root, "proto/pprof.proto")).gsub(%r{//.*}, "")
    messages = text.scan(/^message (\w+) \{(.*?)^\}/m).to_h do |name, body|
      fields = body.scan(/(repeated )?(\w+) (\w+) = (\d+);/).to_h do |repeated, type, field, number|
        [number.to_i, [field.to_sym, type.to_sym, repeated ? :many : :one]]
      end
      [name.to_sym, fields]
    end
    expect(messages).to eq(Pprof::Schema::MESSAGES)
  end
end

# It names everything, with the true defaults.
RSpec.describe "The README" do
  let(:text) { File.read(File.expand_path("../README.md", __dir__)) }

  # What stands below a heading, up to the next.
  def section(heading)
    text[/^### #{Regexp.escape(heading)}\n(.*?)(?=^##)/m, 1] || raise("there is no section #{heading}")
  end

  # The names and defaults in the first two columns of a table.
  def defaults_in(heading)
    section(heading).scan(/^\| `(\w+)`[^|]*\| `([^`]*)` \|/)
                    .to_h { |name, value| [name.to_sym, value.gsub(/(?<=\d)_/, "")] }
  end

  # The names in the first column of a table.
  def names_in(heading)
    section(heading).scan(/^\| (`.*?) \|/).flat_map { |cell,| cell.scan(/`(\w+)[^`]*`/).flatten }.map(&:to_sym)
  end

  it "has the options of a collector" do
    collector = MemprofilerPprof::Collector.new
    expect(defaults_in("Collector.new"))
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

  it "has the variables in the environment" do
    cells = section("In the environment").scan(/\| `?([^`|]*?)`? (?=\|)/).flatten
    found = cells.each_slice(2).reject { |name, _| name == "variable" || name.start_with?("--") }.to_h
    expect(found).to eq(MemprofilerPprof::Configuration.settings.to_h { |setting| [setting.name, setting.default] })
  end

  it "has the methods of a profile" do
    methods = MemprofilerPprof::ProfileData.public_instance_methods(false) - %i[to_s inspect]
    expect(names_in("ProfileData")).to match_array(methods)
  end

  it "has the figures in stats" do
    expect(names_in("stats")).to match_array(MemprofilerPprof::Collector.new.stats.keys)
  end
end

RSpec.describe "The notes on the implementation" do
  let(:root) { File.expand_path("..", __dir__) }
  let(:text) { File.read(File.join(root, "IMPLEMENTATION.md")) }

  it "name files that exist" do
    prefixes = { "core:" => "ext/memprofiler_core/src/", "lib/" => "lib/", "" => "ext/ruby_memprofiler_pprof/src/" }
    files = text.scan(%r{`((core:|lib/|)[\w/]+\.(?:rs|rb))`}).map { |name, prefix| name.sub(prefix, prefixes[prefix]) }
    files += text.scan(/\b(\w+_spec)\b/).map { |name,| "spec/ruby_memprofiler_pprof/#{name}.rb" }
    expect(files.uniq.reject { |file| File.exist?(File.join(root, file)) }).to eq([])
    expect(files.size).to be > 20
  end
end
