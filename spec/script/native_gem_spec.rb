# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require "tmpdir"
require_relative "../../script/native.d/native_gem"

# `script/package native` builds a real one, and uses it where there is no compiler.
RSpec.describe NativeGem, :repository do
  subject(:native_gem) { described_class.new(source, "x86_64-linux-gnu", libraries) }

  let(:root) { File.expand_path("../..", __dir__) }
  let(:source) { Gem::Specification.load(File.join(root, "ruby_memprofiler_pprof.gemspec")) }
  let(:spec) { native_gem.spec }
  let(:directory) { File.realpath(Dir.mktmpdir) }
  let(:libraries) do
    %w[3.9 3.10].to_h do |minor|
      file = File.join(directory, minor, "ruby_memprofiler_pprof.so")
      FileUtils.mkdir_p(File.dirname(file))
      File.write(file, "library for #{minor}")
      [minor, file]
    end
  end
  let(:in_gem) { %w[3.10 3.9].map { |minor| "lib/ruby_memprofiler_pprof/#{minor}/ruby_memprofiler_pprof.so" } }

  after { FileUtils.rm_rf(directory) }

  it "compiles nothing and has nothing to compile" do
    expect(spec.extensions).to eq([])
    expect(spec.files.grep(/\.(rs|toml|lock)\z|extconf/)).to eq([])
  end

  it "has everything else from the source gem, and the libraries" do
    expect(spec.files - in_gem).to eq(source.files.grep_v(%r{\Aext/|\ACargo}))
    expect(spec.files & in_gem).to eq(in_gem)
  end

  it "is for the Rubies from its first library to its last, without previews of the next" do
    fits = %w[3.8.9 3.9.0 3.9.7 3.10.0 3.10.12 3.11.0.dev 3.11.0 4.0.0].map do |version|
      spec.required_ruby_version.satisfied_by?(Gem::Version.new(version))
    end
    expect(fits).to eq([false, true, true, true, true, false, false, false])
  end

  it "requires a RubyGems that distinguishes libcs" do
    fits = %w[3.3.21 3.3.22].map { |version| spec.required_rubygems_version.satisfied_by?(Gem::Version.new(version)) }
    expect(fits).to eq([false, true])
  end

  it "allows any RubyGems if there is only one libc" do
    on_mac = described_class.new(source, "arm64-darwin", libraries)
    expect(on_mac.spec.required_rubygems_version).to eq(source.required_rubygems_version)
  end

  it "does not change the source gem's own specification" do
    expect { native_gem.spec }.not_to(change { [source.platform, source.files, source.extensions] })
  end

  it "is built with its libraries, under the platform's full name" do
    file = native_gem.build(directory)
    expect(File.basename(file)).to eq("ruby_memprofiler_pprof-#{MemprofilerPprof::VERSION}-x86_64-linux-gnu.gem")
    Gem::Package.new(file).extract_files(File.join(directory, "content"))
    expect(in_gem.map { |name| File.read(File.join(directory, "content", name)) })
      .to eq(["library for 3.10", "library for 3.9"])
    expect(Gem::Package.new(file).spec.original_platform.to_s).to eq("x86_64-linux-gnu")
  end

  it "has the program that works on other processes, where there is one" do
    tool = File.join(directory, "tool")
    File.write(tool, "tool")
    file = described_class.new(source, "x86_64-linux-gnu", libraries, tool).build(directory)
    Gem::Package.new(file).extract_files(File.join(directory, "content"))
    extracted = File.join(directory, "content/lib/ruby_memprofiler_pprof/tool")
    expect([File.read(extracted), File.executable?(extracted)]).to eq(["tool", true])
  end

  it "is not built without a library" do
    expect { described_class.new(source, "x86_64-linux-gnu", {}) }.to raise_error(ArgumentError, /x86_64-linux-gnu/)
  end
end
