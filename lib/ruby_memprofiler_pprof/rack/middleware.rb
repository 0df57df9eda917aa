# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/rack/access"
require "ruby_memprofiler_pprof/rack/drain"
require "ruby_memprofiler_pprof/rack/gate"
require "ruby_memprofiler_pprof/rack/query"
require "ruby_memprofiler_pprof/rack/request_summary"
require "ruby_memprofiler_pprof/rack/response"
require "ruby_memprofiler_pprof/rack/summary_page"
require "ruby_memprofiler_pprof/rack/summary_text"

module MemprofilerPprof
  module Rack
    # Profiles single requests that ask for it, and answers with what they allocated and retained in place of the
    # program's own answer: `/users?memprofiler` or the header `X-Memprofiler`. All other requests pass.
    #
    # The value selects the form: `html`, `text`, `pprof` (to download), or nothing for a page in browsers and text
    # elsewhere. `cpu` asks for what used the CPU time of the request's thread instead: a flame graph in browsers, pprof
    # elsewhere. Unauthorized requests pass through unprofiled, as do all if the setting `enabled` is false.
    #
    # Only what the request's own thread allocates is counted, not other threads (with a fiber scheduler, as
    # under Falcon, only its own fiber). The body is read to its end and closed, as a server would. An exception
    # passes through, without a profile. Retained is what is alive after a garbage collection at the end: the first
    # request of a kind fills caches, so ask twice.
    #
    # @example config.ru
    #   use MemprofilerPprof::Rack::Middleware, authorize: ->(env) { Rack::Request.new(env).session[:admin] }
    class Middleware
      # The default options of a request's collector: it samples everything, in bounded memory.
      COLLECTOR_OPTIONS = { sample_rate: 1.0, max_heap_samples: 500_000 }.freeze
      # The forms of an answer.
      FORMATS = %w[html text pprof cpu].freeze
      # Samples per second of CPU time: a request is short.
      CPU_FREQUENCY = 1000

      # @param app [#call] the next Rack application
      # @param authorize [#call, nil] as for {Endpoint#initialize}
      # @param parameter [String, nil] the query parameter that asks for a profile; nil for none
      # @param header [String, nil] the request header that does; nil for none
      # @param max_concurrent [Integer] how many requests may be profiled at a time
      # @param max_seconds [Numeric] after how long to stop reading a body that does not end
      # @param top [Integer] how many lines each table of the summary has
      # @param collector_options [Hash] as for {Collector#initialize}; by default {COLLECTOR_OPTIONS}
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      def initialize(app, authorize: nil, parameter: "memprofiler", header: "X-Memprofiler", max_concurrent: 1,
                     max_seconds: 30, top: 25, **collector_options)
        @app = app
        @access = Access.new(authorize)
        @gate = Gate.new(max_concurrent)
        Argument.check(:parameter, parameter, "nil or a String") { parameter.nil? || parameter.is_a?(String) }
        Argument.check(:header, header, "nil or a String") { header.nil? || header.is_a?(String) }
        @parameter = parameter
        @header = header && "HTTP_#{header.upcase.tr("-", "_")}"
        @max_seconds = Argument.check(:max_seconds, max_seconds, "a number above 0") do
          max_seconds.is_a?(Numeric) && max_seconds.positive?
        end
        @top = Argument.integer(:top, top, from: 1)
        @collector_options = { **COLLECTOR_OPTIONS, **collector_options }.freeze
        # Raises now rather than at the first request if an option is wrong.
        Collector.new(**@collector_options)
      end

      # @param env [Hash] a Rack environment
      # @return [Array] status, headers and body
      def call(env)
        Service.announce
        wanted = MemprofilerPprof.without_profiling { asked(env) }
        return @app.call(env) if wanted.nil? || !MemprofilerPprof.profiler.enabled? || !@access.permit?(env)

        response = profile(wanted, env)
        env["REQUEST_METHOD"] == "HEAD" ? Response.without_body(response) : response
      end

      private

      def profile(wanted, env)
        format = format_of(wanted, env)
        return not_a_format(wanted) unless format

        @gate.enter { format == "cpu" ? answer_cpu(env) : answer(env, format) } || Response.too_many(@gate.limit)
      end

      # @return [String, nil] nil if no profile is
      def asked(env)
        value = env[@header] if @header
        return value if value || @parameter.nil?

        query = env["QUERY_STRING"].to_s
        Query.decode(query)&.fetch(@parameter, nil) if query.include?(@parameter)
      end

      def format_of(wanted, env)
        return wanted if FORMATS.include?(wanted)
        return unless ["", "1", "true"].include?(wanted)

        env["HTTP_ACCEPT"].to_s.include?("text/html") ? "html" : "text"
      end

      def answer(env, format)
        collector = Collector.new(**@collector_options)
        ending = BlockEndings.enter { collector.discard }
        outcome = run(collector, env)
        profile = collector.flush(gc: true)
        MemprofilerPprof.without_profiling { show(profile, env, outcome, format) }
      rescue MemprofilerPprof::Error => e
        # Between the collector's start and the program's response, this is an exception of the program's own.
        raise if collector&.only && !outcome

        Response.error(503, "#{e.message} (#{e.class})")
      ensure
        BlockEndings.leave(ending)
        # No profile: because of an exception, a throw, or the end of the thread, perhaps while the profile was made.
        collector&.discard unless profile
      end

      def show(profile, env, outcome, format)
        return Response.profile("request", profile.pprof_data) if format == "pprof"

        summary = RequestSummary.new(profile, env, outcome, @top)
        format == "html" ? Response.html(SummaryPage.new(summary).to_s) : Response.text(SummaryText.new(summary).to_s)
      end

      def answer_cpu(env)
        inside = false
        options = { **CPU.configured, **@collector_options.slice(:labels, :thread_names) }
        data = CPU.profile(frequency: CPU_FREQUENCY, only: :thread, **options) do
          inside = true
          call_and_drain(isolated(env))
          inside = false
        end
        MemprofilerPprof.without_profiling { show_cpu(data, env) }
      rescue MemprofilerPprof::Error => e
        # In there, this is an exception of the program's own.
        raise if inside

        Response.error(503, "#{e.message} (#{e.class})")
      end

      def show_cpu(data, env)
        return Response.profile("cpu", data.pprof_data) unless env["HTTP_ACCEPT"].to_s.include?("text/html")

        # Loaded only here, since few programs are asked for it.
        require "ruby_memprofiler_pprof/flamegraph"
        request = RequestSummary.request(env)
        Response.html(Flamegraph.new([data.profile], title: request).to_html, policy: Flamegraph.policy)
      end

      def not_a_format(wanted)
        name = @parameter || "the header"
        Response.error(400, "#{name} must be one of #{FORMATS.join(", ")} or nothing, got #{wanted.inspect}.")
      end

      # @return [RequestSummary::Outcome]
      def run(collector, env)
        env = isolated(env)
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        collector.start(only: Fiber.current_scheduler ? :fiber : :thread)
        status, bytes = call_and_drain(env)
        collector.stop
        RequestSummary::Outcome.new(status, bytes, Process.clock_gettime(Process::CLOCK_MONOTONIC) - began)
      end

      # A copy, so that objects that the program adds to the environment do not outlive the request, and count as
      # retained. Without what leads to the client, who gets the profile instead.
      def isolated(env)
        env = env.except("rack.hijack", "rack.early_hints")
        env["rack.hijack?"] = false if env.key?("rack.hijack?")
        env
      end

      # @return [Array(Integer, Integer)] status and bytes of the program's response
      def call_and_drain(env)
        status, headers, body = @app.call(env)
        [status, Drain.call(headers, body, @max_seconds)]
      end
    end
  end
end
