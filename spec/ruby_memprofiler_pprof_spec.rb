# frozen_string_literal: true

require "fileutils"
require "tmpdir"

RSpec.describe MemprofilerPprof do
  it "is also called as the gem is" do
    expect(RubyMemprofilerPprof).to be(described_class)
  end

  describe "the extension" do
    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    # Where a precompiled gem has the library for this Ruby.
    let(:precompiled) { "ruby_memprofiler_pprof/#{RUBY_VERSION[/\d+\.\d+/]}/ruby_memprofiler_pprof" }

    # Requires the gem with one more directory in the load path, before all others.
    def require_gem
      run_command(RbConfig.ruby, *load_path_options, "-I.", "-e", "require 'ruby_memprofiler_pprof'; print 'loaded'")
    end

    def write(file, content)
      FileUtils.mkdir_p(File.dirname(file))
      File.write(file, content)
    end

    it "is the one for this Ruby if there is one" do
      write("#{precompiled}.rb", "print 'precompiled '; require 'ruby_memprofiler_pprof/ruby_memprofiler_pprof'")
      expect(require_gem.stdout).to eq("precompiled loaded")
    end

    it "is the only one otherwise" do
      expect(require_gem).to have_attributes(stdout: "loaded", stderr: "")
    end

    it "is not replaced by another when it cannot be loaded" do
      write("#{precompiled}.#{RbConfig::CONFIG["DLEXT"]}", "no library")
      expect(require_gem).to have_attributes(stdout: "", stderr: /#{precompiled}.* \(LoadError\)/)
    end
  end
end
