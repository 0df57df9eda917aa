# frozen_string_literal: true

# Contexts and spans as in opentelemetry-api, which has no Debian package: only what the gem and its examples use,
# without a tracer.
module OpenTelemetry
  # Where each fiber keeps its contexts.
  Fiber.attr_accessor :opentelemetry_context

  # The current context of a fiber; immutable, only ever replaced.
  class Context
    class << self
      def current
        stack.last || ROOT
      end

      # Returns the argument for detach.
      def attach(context)
        stack.push(context).size
      end

      # Returns whether the argument matches the result of the corresponding attach.
      def detach(token)
        matching = token == stack.size
        stack.pop
        matching
      end

      def clear
        Fiber.current.opentelemetry_context = []
      end

      def with_value(key, value)
        context = current.set_value(key, value)
        token = attach(context)
        yield context, value
      ensure
        detach(token)
      end

      private

      def stack
        Fiber.current.opentelemetry_context ||= []
      end
    end

    def initialize(entries)
      @entries = entries.freeze
    end

    def value(key)
      @entries[key]
    end

    def set_value(key, value)
      Context.new({ **@entries, key => value })
    end

    ROOT = new({})
  end

  # Spans.
  module Trace
    CURRENT_SPAN_KEY = Object.new
    private_constant :CURRENT_SPAN_KEY

    TraceFlags = Struct.new(:sampled) do
      def sampled?
        sampled
      end
    end

    # The ids of a span: binary Strings of 16 and 8 bytes.
    class SpanContext
      attr_reader :trace_id, :span_id, :trace_flags

      def initialize(trace_id: Random.bytes(16), span_id: Random.bytes(8), trace_flags: TraceFlags.new(false),
                     remote: false)
        @trace_id = trace_id
        @span_id = span_id
        @trace_flags = trace_flags
        @remote = remote
      end

      def remote?
        @remote
      end

      INVALID = new(trace_id: ("\0" * 16).b, span_id: ("\0" * 8).b)
    end

    Span = Struct.new(:context)
    Span::INVALID = Span.new(SpanContext::INVALID)

    class << self
      def current_span(context = nil)
        (context || Context.current).value(CURRENT_SPAN_KEY) || Span::INVALID
      end

      def with_span(span)
        Context.with_value(CURRENT_SPAN_KEY, span) { |context, value| yield value, context }
      end

      def context_with_span(span, parent_context: Context.current)
        parent_context.set_value(CURRENT_SPAN_KEY, span)
      end
    end
  end
end
