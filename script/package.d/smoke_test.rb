# frozen_string_literal: true

# Profiles with the installed gem, and checks that all of it comes from the directory in ARGV.

require "ruby_memprofiler_pprof"
require_relative "../../spec/support/pprof"

Kept = Class.new

place = File.realpath(ARGV.fetch(0))
decoder = File.expand_path("../../spec/support", __dir__)
elsewhere = $LOADED_FEATURES.grep(/memprofiler/).map { |file| File.realpath(file) }
                            .reject { |file| file.start_with?(place, decoder) }
abort "loaded from another place than #{place}: #{elsewhere.join(" ")}" if elsewhere.any?

kept = nil
data = MemprofilerPprof::Collector.new(sample_rate: 1.0).profile { kept = Array.new(100) { Kept.new } }
found = Pprof.decode(data).by_class["Kept"]
abort "100 objects are alive, the profile says #{found.inspect}" unless found == 100
puts "ok: #{data}, #{kept.size} objects"
