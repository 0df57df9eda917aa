# frozen_string_literal: true

require_relative "lib/ruby_memprofiler_pprof/version"

Gem::Specification.new do |spec|
  spec.name = "ruby_memprofiler_pprof"
  spec.version = MemprofilerPprof::VERSION
  spec.authors = ["The ruby_memprofiler_pprof authors"]
  spec.summary = "A heap profiler for Ruby in production: which call paths hold the memory, as pprof"
  spec.description = <<~TEXT
    Samples allocations inside a running Ruby process and follows the sampled objects until they die. A flush gives a
    gzipped pprof profile of the call paths that allocated the objects alive now, and of what was allocated since the
    last one: unbiased, and at a cost low enough for production.
  TEXT
  spec.license = "Apache-2.0"
  spec.homepage = "https://github.com/zendesk/ruby_memprofiler_pprof"
  files = "#{spec.homepage}/blob/v#{spec.version}"
  spec.metadata = {
    "bug_tracker_uri" => "#{spec.homepage}/issues",
    "changelog_uri" => "#{files}/CHANGELOG.md",
    "documentation_uri" => "#{files}/README.md",
    "rubygems_mfa_required" => "true",
    "source_code_uri" => "#{spec.homepage}/tree/v#{spec.version}"
  }
  spec.required_ruby_version = ">= 3.1"

  # Cargo needs the whole workspace: its manifest, its lock file and what the manifests of all members name.
  spec.files = Dir.glob(
    ["lib/**/*.{rb,html,css,js}", "exe/*", "sig/*.rbs", "proto/*.proto", "Cargo.{toml,lock}",
     "ext/*/{Cargo.toml,build.rs,extconf.rb,src/**/*.rs}",
     "README.md", "docs/*.{md,png}", "IMPLEMENTATION.md", "CHANGELOG.md", "LICENSE", ".yardopts"],
    base: __dir__
  ).sort
  spec.bindir = "exe"
  spec.executables = Dir.children(File.join(__dir__, "exe")).sort
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/ruby_memprofiler_pprof/extconf.rb"]
end
