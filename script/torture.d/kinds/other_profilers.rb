# frozen_string_literal: true

%w[stackprof memory_profiler].each do |name|
  require name
rescue LoadError
  nil
end

module Torture
  module Kinds
    # Other memory profilers at the same time.
    class OtherProfilers < Kind
      def self.missing
        "neither stackprof nor memory_profiler is installed" unless defined?(StackProf) || defined?(MemoryProfiler)
      end

      # A collection that begins in the hook of another tool is not reported.
      def self.hides_collections?
        RUBY_VERSION < "3.4"
      end

      private

      def step
        Child::TRACING.synchronize { defined?(StackProf) && random.rand < 0.8 ? stackprof : memory_profiler }
        nap(0.05)
      end

      def stackprof
        StackProf.run(mode: :object, interval: random.rand(1..20), raw: random.rand < 0.5) { herd.grow(200) }
      end

      def memory_profiler
        return unless defined?(MemoryProfiler)

        MemoryProfiler.report(top: 5) { herd.grow(100) }
      end
    end
  end
end
