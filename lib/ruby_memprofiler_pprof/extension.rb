# frozen_string_literal: true

# Loads the native library. A precompiled gem carries one per Ruby minor, a compiled one a single library. Not
# require_relative: RubyGems may keep compiled extensions outside lib/.

minor = RUBY_VERSION[/\A\d+\.\d+/]
precompiled = "ruby_memprofiler_pprof/#{minor}/ruby_memprofiler_pprof"
compiled = "ruby_memprofiler_pprof/ruby_memprofiler_pprof"
from_source = "`gem install ruby_memprofiler_pprof --platform ruby`, or `bundle config set force_ruby_platform " \
              "true`, compiles the gem instead, which takes Rust"

begin
  require precompiled
rescue LoadError => e
  # A library that exists but cannot be loaded is reported, rather than another one tried.
  raise LoadError, "#{e.message}\nThe precompiled library does not fit this system; #{from_source}" unless
    e.path == precompiled

  begin
    require compiled
  rescue LoadError => e
    raise unless e.path == compiled

    minors = Dir.children(__dir__).grep(/\A\d+\.\d+\z/).sort_by { |name| name.split(".").map(&:to_i) }
    raise LoadError, "ruby_memprofiler_pprof is not compiled: run `rake compile`, or install the gem" if minors.empty?

    raise LoadError, "this precompiled gem of ruby_memprofiler_pprof is for Ruby #{minors.join(", ")}, and this is " \
                     "Ruby #{RUBY_VERSION}; #{from_source}"
  end
end
