# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/rack/access"
require "ruby_memprofiler_pprof/rack/gate"
require "ruby_memprofiler_pprof/rack/index_page"
require "ruby_memprofiler_pprof/rack/query"
require "ruby_memprofiler_pprof/rack/response"
require "ruby_memprofiler_pprof/rack/stack_text"

module MemprofilerPprof
  module Rack
    # Serves the profiles of a running collector as Go's net/http/pprof does, to be mounted at `/debug/pprof`.
    #
    # `heap` is what is alive, and what was allocated since the collector's last flush. Reading it does not end that
    # interval: flushers of the same collector still report these allocations. `allocs` is the same profile with
    # allocated bytes as the default value. `delta_heap` has the allocations since the last `delta_heap`. With
    # `?seconds=N` all three have the allocations of N seconds, during which only this request's thread waits.
    #
    # `report`, `diff` and `flamegraph` are pages that show what the commands of these names do.
    #
    # `?gc=1` collects garbage first, `?debug=1` answers with text. Errors are text, which `go tool pprof` shows.
    #
    # @example
    #   token = ENV["PPROF_TOKEN"].to_s
    #   authorize = ->(env) { !token.empty? && Rack::Utils.secure_compare(env["HTTP_X_TOKEN"].to_s, token) }
    #   run MemprofilerPprof::Rack::Endpoint.new(authorize: authorize)
    class Endpoint
      # The profiles, and which value a viewer shows first.
      PROFILES = { "heap" => :retained_size, "allocs" => :allocations_size, "delta_heap" => :retained_size }.freeze
      PAGES = %w[report diff flamegraph].freeze
      private_constant :PROFILES, :PAGES

      # @param collector [Collector, nil] nil is {MemprofilerPprof.collector} if it runs, else the first that does
      # @param authorize [#call, nil] is called with the request's env and returns whether it may see profiles. Without
      #   it, only requests from this machine to a program in development may
      # @param max_concurrent [Integer] how many profiles are made at a time, 1..6
      # @param max_seconds [Integer] the most that `?seconds=` may ask for
      # @param sample_type_names [Symbol, nil] `:go` for servers that know only Go's names, `:ruby`, or nil for the
      #   collector's option
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      def initialize(collector: nil, authorize: nil, max_concurrent: 2, max_seconds: 60, sample_type_names: nil)
        Argument.check(:collector, collector, "a MemprofilerPprof::Collector") do
          collector.nil? || collector.is_a?(Collector)
        end
        Argument.check(:sample_type_names, sample_type_names, ":ruby, :go or nil") do
          [:ruby, :go, nil].include?(sample_type_names)
        end
        # Each needs a reader of the collector, which has at most seven; one is for delta_heap.
        Argument.check(:max_concurrent, max_concurrent, "an Integer in 1..6") { (1..6).include?(max_concurrent) }
        @collector = collector
        @access = Access.new(authorize)
        @gate = Gate.new(max_concurrent)
        @max_seconds = Argument.integer(:max_seconds, max_seconds, from: 1)
        @sample_type_names = sample_type_names
        @delta_mutex = Mutex.new
      end

      # @param env [Hash] a Rack environment
      # @return [Array] status, headers and body
      def call(env)
        method = env["REQUEST_METHOD"]
        return Response.not_allowed unless %w[GET HEAD].include?(method)
        return Response.forbidden unless @access.permit?(env)

        response = MemprofilerPprof.without_profiling { respond(env, head: method == "HEAD") }
        method == "HEAD" ? Response.without_body(response) : response
      rescue Query::Invalid => e
        Response.error(400, e.message)
      rescue MemprofilerPprof::Error => e
        Response.error(503, "#{e.message} (#{e.class})")
      end

      private

      def respond(env, head:)
        name = env["PATH_INFO"].to_s.delete_prefix("/").delete_suffix("/")
        case name
        when "" then Response.html(IndexPage.new(env, running_collector, @max_seconds).to_s)
        when "cmdline" then Response.text([$PROGRAM_NAME, *ARGV].join("\0"))
        when *PROFILES.keys then profile(name, Query.new(env["QUERY_STRING"], @max_seconds), head)
        when *PAGES then page(name, env, head)
        else
          names = [*PAGES, *PROFILES.keys].join(", ")
          Response.error(404, "There is no #{name.inspect} here, only #{names} and cmdline.")
        end
      end

      def profile(name, query, head)
        with_collector(query, head, Response.profile(name, "")) do |collector|
          answer(name, query, take(name, query, collector))
        end
      end

      def page(name, env, head)
        # Loaded only here, since most programs are never asked for a page.
        require "ruby_memprofiler_pprof/rack/flamegraph_page"
        require "ruby_memprofiler_pprof/rack/report_page"
        query = PageQuery.new(name, env["QUERY_STRING"], @max_seconds)
        with_collector(query, head, Response.html("")) do |collector|
          show(name, query, env["SCRIPT_NAME"], collector)
        end
      end

      def show(name, query, path, collector)
        profiles = name == "diff" ? pair(query, collector) : [take("heap", query, collector)]
        profiles.map!(&:profile)
        page = name == "flamegraph" ? FlamegraphPage.new(*profiles, query) : ReportPage.new(profiles, query, path)
        page.response
      end

      # @param empty [Array] the response without its body
      def with_collector(query, head, empty)
        collector = running_collector
        return not_running if collector.nil?
        # A HEAD request needs no profile.
        return query.debug ? Response.text("") : empty if head

        @gate.enter { yield collector } || Response.too_many
      end

      def answer(name, query, profile)
        return Response.profile(name, profile.pprof_data) unless query.debug

        Response.text(StackText.new(profile, PROFILES.fetch(name)).to_s)
      end

      def take(name, query, collector)
        options = { gc: query.gc, sample_type_names: @sample_type_names, default_sample_type: PROFILES.fetch(name) }
        return over(query.seconds, collector, options) if query.seconds
        return delta_reader(collector).flush(**options) if name == "delta_heap"

        collector.peek(**options)
      end

      def over(seconds, collector, options)
        collector.open_reader do |reader|
          sleep(seconds)
          reader.flush(**options)
        end
      end

      # The second profile has the allocations since the first, which bound what was born in between (see
      # {Report::Difference}).
      def pair(query, collector)
        options = { gc: query.gc, sample_type_names: @sample_type_names }
        collector.open_reader do |reader|
          old = reader.flush(**options)
          sleep(query.seconds)
          [old, reader.flush(**options)]
        end
      end

      def delta_reader(collector)
        @delta_mutex.synchronize do
          unless collector.equal?(@delta_reader&.collector)
            @delta_reader&.close
            @delta_reader = nil
            @delta_reader = collector.open_reader
          end
          @delta_reader
        end
      end

      def running_collector
        return @collector if @collector&.running?
        return if @collector
        return MemprofilerPprof.collector if MemprofilerPprof.running?

        # One that samples a single thread or fiber (of {Middleware}, say) does not represent the process.
        MemprofilerPprof.collectors.find { |collector| collector.running? && collector.only.nil? }
      end

      def not_running
        Response.error(503, "No collector is running in this process. Start one with MemprofilerPprof.start, or run " \
                            "the program with memprofiler run.", retry_after: "30")
      end
    end
  end
end
