# frozen_string_literal: true

# Loads the native library. A precompiled gem carries one per Ruby minor beside this file, a compiled one a single
# library. Not require_relative: RubyGems may keep compiled extensions outside lib/. Nor is one tried after the other:
# before `require` fails, RubyGems searches all gems, which took 15 ms of each start.

minor = RUBY_VERSION[/\A\d+\.\d+/]
precompiled = File.directory?(File.join(__dir__, minor))
library = ["ruby_memprofiler_pprof", *(minor if precompiled), "ruby_memprofiler_pprof"].join("/")
from_source = "`gem install ruby_memprofiler_pprof --platform ruby`, or `bundle config set force_ruby_platform " \
              "true`, compiles the gem instead, which takes Rust"

# One for another Ruby could be loaded, too, and would fail at its first use. Where several Rubies share a gem's
# directory, the last one has compiled what is there, and RubyGems keeps those of the others elsewhere.
built_for = lambda do |file|
  note = File.join(File.dirname(file), "built_for")
  File.exist?(note) ? File.read(note).chomp : minor
end
_, file = $LOAD_PATH.resolve_feature_path(library)
found = library
if file && built_for.call(file) != minor
  others = $LOAD_PATH.map { |directory| File.join(directory.to_s, "#{library}#{File.extname(file)}") }
  found = others.find { |other| File.exist?(other) && built_for.call(other) == minor }
end
unless found
  raise LoadError, "ruby_memprofiler_pprof is compiled for Ruby #{built_for.call(file)}, and this is Ruby " \
                   "#{RUBY_VERSION}: install the gem with this Ruby or, in a checkout, run rake compile"
end

begin
  require found
rescue LoadError => e
  raise LoadError, "#{e.message}\nThe precompiled library does not fit this system; #{from_source}" if precompiled
  raise unless e.path == library

  minors = Dir.children(__dir__).grep(/\A\d+\.\d+\z/)
  raise LoadError, "ruby_memprofiler_pprof is not compiled: run `rake compile`, or install the gem" if minors.empty?

  minors.sort_by! { |name| name.split(".").map(&:to_i) }
  raise LoadError, "this precompiled gem of ruby_memprofiler_pprof is for Ruby #{minors.join(", ")}, and this is " \
                   "Ruby #{RUBY_VERSION}; #{from_source}"
end
