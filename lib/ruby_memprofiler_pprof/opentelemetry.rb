# frozen_string_literal: true

require "ruby_memprofiler_pprof/base"

module MemprofilerPprof
  # Labels from OpenTelemetry's traces: up to 1,000 samples, chosen at random, have the labels `trace_id` and `span_id`,
  # the ids of the span that allocated the object.
  #
  # The process's profiler installs this when it starts, if OpenTelemetry is loaded by then. Otherwise:
  #
  # @example
  #   require "ruby_memprofiler_pprof/opentelemetry"
  #   MemprofilerPprof::OpenTelemetry.install
  module OpenTelemetry
    # Patches OpenTelemetry, once. Does nothing if the setting `enabled` is false.
    # @return [void]
    def self.install
      ::OpenTelemetry::Context.singleton_class.prepend(Contexts) if MemprofilerPprof.profiler.enabled?
      nil
    end

    # Records the span that this fiber is in.
    # @param context [::OpenTelemetry::Context] the fiber's
    # @return [void]
    # @api private
    def self.enter(context)
      span = ::OpenTelemetry::Trace.current_span(context).context
      # A span that is not sampled is in no trace, and a remote one is another process's.
      if span.trace_flags.sampled? && !span.remote?
        MemprofilerPprof.enter_span(span.trace_id, span.span_id)
      else
        MemprofilerPprof.enter_span(nil, nil)
      end
    rescue StandardError
      # Something else in place of a span, such as a test double, may lack these methods.
      MemprofilerPprof.enter_span(nil, nil)
    end

    # Prepended to the singleton class of OpenTelemetry::Context: the methods that change a fiber's context.
    # @api private
    module Contexts
      def attach(context)
        super.tap { OpenTelemetry.enter(context) }
      end

      def detach(token)
        super.tap { OpenTelemetry.enter(current) }
      end

      def clear
        super.tap { OpenTelemetry.enter(current) }
      end
    end
  end
end
