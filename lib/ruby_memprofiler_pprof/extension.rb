# frozen_string_literal: true

# Loads the native library. A precompiled gem carries one per Ruby minor beside this file, a compiled one a single
# library. Not require_relative: RubyGems may keep compiled extensions outside lib/. Nor is one tried after the other:
# before `require` fails, RubyGems searches all gems, which took 15 ms of each start.

minor = RUBY_VERSION[/\A\d+\.\d+/]
precompiled = File.directory?(File.join(__dir__, minor))
library = ["ruby_memprofiler_pprof", *(minor if precompiled), "ruby_memprofiler_pprof"].join("/")
from_source = "`gem install ruby_memprofiler_pprof --platform ruby`, or `bundle config set force_ruby_platform " \
              "true`, compiles the gem instead, which takes Rust"

# One for another Ruby could be loaded, too, and would fail at its first use.
_, file = $LOAD_PATH.resolve_feature_path(library)
note = File.join(File.dirname(file), "built_for") if file
built_for = File.read(note).chomp if note && File.exist?(note)
unless [nil, minor].include?(built_for)
  raise LoadError, "ruby_memprofiler_pprof is compiled for Ruby #{built_for}, and this is Ruby #{RUBY_VERSION}: " \
                   "install the gem with this Ruby"
end

begin
  require library
rescue LoadError => e
  raise LoadError, "#{e.message}\nThe precompiled library does not fit this system; #{from_source}" if precompiled
  raise unless e.path == library

  minors = Dir.children(__dir__).grep(/\A\d+\.\d+\z/)
  raise LoadError, "ruby_memprofiler_pprof is not compiled: run `rake compile`, or install the gem" if minors.empty?

  minors.sort_by! { |name| name.split(".").map(&:to_i) }
  raise LoadError, "this precompiled gem of ruby_memprofiler_pprof is for Ruby #{minors.join(", ")}, and this is " \
                   "Ruby #{RUBY_VERSION}; #{from_source}"
end
