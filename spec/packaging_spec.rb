# frozen_string_literal: true

require "fileutils"
require "ripper"
require "tmpdir"

# The contents of the gem. `script/package` builds and installs it.
RSpec.describe "The gem", :repository do
  subject(:gem_spec) { Gem::Specification.load(File.join(root, "ruby_memprofiler_pprof.gemspec")) }

  let(:root) { File.expand_path("..", __dir__) }
  let(:files) { gem_spec.files }

  # All files in directories of the checkout with one of several endings.
  def below(*directories, extension: "*")
    directories.flat_map { |directory| Dir.glob("#{directory}/**/*.#{extension}", base: root) }
               .select { |file| File.file?(File.join(root, file)) }
  end

  it "has exactly the files that it should have" do
    expect(files).to match_array(
      %w[.yardopts CHANGELOG.md Cargo.lock Cargo.toml IMPLEMENTATION.md LICENSE README.md
         exe/memprofiler exe/ruby_memprofiler_pprof exe/ruby_memprofiler_pprof_profile
         ext/memprofiler_attach/Cargo.toml ext/memprofiler_core/Cargo.toml ext/ruby_layout/Cargo.toml
         ext/ruby_memprofiler_pprof/Cargo.toml ext/ruby_memprofiler_pprof/build.rs
         ext/ruby_memprofiler_pprof/extconf.rb proto/pprof.proto] +
      below("docs", extension: "{md,png}") + below("lib", extension: "{rb,html,css,js}") +
      below("sig", extension: "rbs") +
      below("ext/memprofiler_attach/src", "ext/memprofiler_core/src", "ext/ruby_layout/src",
            "ext/ruby_memprofiler_pprof/src", extension: "rs")
    )
  end

  it "has no build products, tests or development tools" do
    expect(files.grep(%r{\A(spec|script|rakelib|tmp|target|pkg)/|/(target|tests|benches|fuzz)/|\.(so|bundle|o|gem)\z}))
      .to eq([])
    expect(files.grep(/(Gemfile|Rakefile|\.lock)\z/)).to eq(["Cargo.lock"])
  end

  # Whether a method passes its `&` or `...` on inside a block, in a tree of Ripper's. Ruby 3.1 knows no others.
  def forwards_in_block?(node, in_block: false)
    return false unless node.is_a?(Array)

    type, _, block = node
    return true if in_block && (type == :args_forward || (type == :args_add_block && block.nil?))

    in_block = type != :def && (in_block || %i[brace_block do_block lambda].include?(type))
    node.any? { |child| forwards_in_block?(child, in_block: in_block) }
  end

  it "can be read by Ruby 3.3.0, to which anonymous arguments in blocks are ambiguous" do
    ruby = files.grep(%r{\A(lib/.*\.rb|exe/.*)\z})
    expect(ruby.select { |file| forwards_in_block?(Ripper.sexp_raw(File.read(File.join(root, file)))) }).to eq([])
  end

  it "has no executable files but the commands" do
    expect(files.select { |file| File.executable?(File.join(root, file)) })
      .to eq(gem_spec.executables.map { |name| "exe/#{name}" })
  end

  it "has the same files wherever it is built" do
    elsewhere = run_ruby("print Gem::Specification.load(ARGV[0]).files.join(' ')",
                         args: [gem_spec.loaded_from], chdir: Dir.tmpdir, gems: true)
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
      names = Dir.children(File.join(root, "ext"))
      expect(outcome.stdout.scan(/"name":"(#{names.join("|")})","version":"([^"]*)"/).uniq)
        .to match_array(names.map { |name| [name, MemprofilerPprof::VERSION] })
    end
  end

  it "has a lock file for its own version" do
    names = Dir.children(File.join(root, "ext"))
    locked = File.read(File.join(root, "Cargo.lock")).scan(/name = "(#{names.join("|")})"\nversion = "([^"]*)"/).to_h
    expect(locked).to eq(names.to_h { |name| [name, MemprofilerPprof::VERSION] })
  end

  it "has complete metadata" do
    expect(gem_spec).to have_attributes(
      name: "ruby_memprofiler_pprof", version: Gem::Version.new(MemprofilerPprof::VERSION), licenses: ["Apache-2.0"],
      required_ruby_version: Gem::Requirement.new(">= 3.1"), require_paths: include("lib"),
      executables: %w[memprofiler ruby_memprofiler_pprof ruby_memprofiler_pprof_profile],
      extensions: ["ext/ruby_memprofiler_pprof/extconf.rb"],
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

RSpec.describe "The notes on the implementation" do
  let(:root) { File.expand_path("..", __dir__) }
  let(:text) { File.read(File.join(root, "IMPLEMENTATION.md")) }

  def spec_file(name)
    "spec/ruby_memprofiler_pprof/#{name}.rb"
  end

  it "name files that exist" do
    prefixes = { "core:" => "ext/memprofiler_core/src/", "layout:" => "ext/ruby_layout/src/",
                 "attach:" => "ext/memprofiler_attach/src/", "lib/" => "lib/",
                 "" => "ext/ruby_memprofiler_pprof/src/" }
    files = text.scan(%r{`((core:|layout:|attach:|lib/|)(?!spec/)[\w/]+\.(?:rs|rb))`}).map do |name, prefix|
      name.sub(prefix, prefixes[prefix])
    end
    files += text.scan(%r{\bspec/[\w/]+\.rb}) + text.scan(%r{(?<![\w/])(\w+_spec)\b}).map { |name,| spec_file(name) }
    expect(files.uniq.reject { |file| File.exist?(File.join(root, file)) }).to eq([])
    expect(files.size).to be > 20
  end

  it "name examples that exist" do
    named = text.scan(/\b(\w+_spec): ("[^"|]+"(?:, "[^"|]+")*)/).flat_map do |name, examples|
      examples.scan(/"([^"]+)"/).map { |(example)| [spec_file(name), example] }
    end
    missing = named.reject do |file, example|
      File.read(File.join(root, file)).match?(/^ +it "[^\n]*#{Regexp.escape(example)}/)
    end
    expect(missing).to eq([])
    expect(named.size).to be > 20
  end
end
