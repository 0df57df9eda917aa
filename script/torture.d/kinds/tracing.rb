# frozen_string_literal: true

require "objspace"

module Torture
  module Kinds
    # ObjectSpace's own tracing, its walks over the heap, and TracePoints.
    class Tracing < Kind
      # A collection that begins in the hook of another tool is not reported.
      def self.hides_collections?
        RUBY_VERSION < "3.4"
      end

      private

      def step
        case random.rand(6)
        when 0, 1 then Child::TRACING.synchronize { ObjectSpace.trace_object_allocations { herd.grow(200) } }
        when 2 then ObjectSpace.each_object(Class) { |kind| kind }
        when 3 then ObjectSpace.count_objects_size
        when 4 then walk
        else Child::TRACING.synchronize { trace }
        end
        nap
      rescue RuntimeError
        # Counts what an extension allocates when asked for a size.
        herd.add
      end

      def walk
        ObjectSpace.each_object { |object| break if object.equal?(nil) }
        ObjectSpace.memsize_of_all(String)
        ObjectSpace.reachable_objects_from(herd.kept) && ObjectSpace.count_objects
      end

      def trace
        seen = 0
        TracePoint.new(:line, :c_call, :call) { seen += 1 }.enable(target_thread: Thread.current) { herd.grow(20) }
      end

      def finish
        ObjectSpace.trace_object_allocations_clear
      end
    end
  end
end
