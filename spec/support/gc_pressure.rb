# frozen_string_literal: true

# SPEC_GC=compact moves objects in each major collection, in the suite and in its subprocesses. SPEC_GC=stress collects
# garbage at each allocation while a collector's method runs. Doing so for everything in the suite would take days.
case ENV["SPEC_GC"].to_s
when "" then nil
when "compact"
  # Not while files are loaded: rbs's parser remembers the addresses of its classes. Up to Ruby 3.1 a collection that
  # has begun to mark would move what it has not pinned.
  compact = proc do
    GC.start
    GC.auto_compact = true
  end
  defined?(RSpec) ? RSpec.configure { |config| config.before(:suite, &compact) } : compact.call
when "stress"
  running = 0
  MemprofilerPprof::Collector.prepend(
    Module.new do
      %i[start stop flush stats].each do |name|
        define_method(name) do |**options|
          running += 1
          GC.stress = true
          super(**options)
        ensure
          # Other threads may still be in a method.
          running -= 1
          GC.stress = running.positive?
        end
      end
    end
  )
else raise ArgumentError, "SPEC_GC may be compact or stress, got #{ENV["SPEC_GC"].inspect}"
end
