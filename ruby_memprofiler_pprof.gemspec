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
  spec.metadata = { "rubygems_mfa_required" => "true" }
  spec.required_ruby_version = ">= 3.1"

  spec.files = Dir["lib/**/*.rb", "exe/*", "ext/**/*.{rb,rs,toml}", "proto/*.proto", "sig/**/*.rbs",
                   "Cargo.{toml,lock}", "*.md", "LICENSE"]
  spec.bindir = "exe"
  spec.executables = Dir.children("exe").sort
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/ruby_memprofiler_pprof/extconf.rb"]
end
