# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"
require "ruby_memprofiler_pprof/on_demand"
require "ruby_memprofiler_pprof/rack/access"
require "ruby_memprofiler_pprof/rack/cluster"
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
    # `report`, `diff`, `flamegraph` and `leaks` are pages that show what the commands of these names do. `retainers` is
    # one that shows what the command `why` does: who holds what is alive; `memory` is one for the command of that name.
    #
    # `profile` is the CPU time of the whole process over 30 or `?seconds=N` seconds; it needs no collector.
    #
    # `?gc=1` collects garbage first, `?debug=1` answers with text. Errors are text, which `go tool pprof` shows.
    #
    # `?pid=N` lets another process of the same program answer, `?pid=all` adds up all of them. They are known by their
    # sockets: the setting `socket` must have `%{pid}` in it.
    #
    # @example
    #   token = ENV["PPROF_TOKEN"].to_s
    #   authorize = ->(env) { !token.empty? && Rack::Utils.secure_compare(env["HTTP_X_TOKEN"].to_s, token) }
    #   run MemprofilerPprof::Rack::Endpoint.new(authorize: authorize)
    class Endpoint
      # What each page is made of: one of OnDemand::NAMES.
      SOURCES = { "report" => "heap", "diff" => "diff", "flamegraph" => "heap", "leaks" => "leaks" }.freeze
      PAGES = SOURCES.keys.freeze
      # What else there is, and the methods that answer.
      OTHERS = { "retainers" => :retainers, "memory" => :memory, "profile" => :cpu }.freeze
      private_constant :SOURCES, :PAGES, :OTHERS

      # @param collector [Collector, nil] nil is {MemprofilerPprof.collector} if it runs, else the first that does
      # @param authorize [#call, nil] is called with the request's env and returns whether it may see profiles. Without
      #   it, only requests from this machine to a program in development may
      # @param max_concurrent [Integer] how many profiles are made at a time, 1..5
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
        # Each needs a reader of the collector, of which seven can be open; one is for delta_heap, one for leaks.
        # The socket may need three.
        Argument.check(:max_concurrent, max_concurrent, "an Integer in 1..5") { (1..5).include?(max_concurrent) }
        @collector = collector
        @access = Access.new(authorize)
        @gate = Gate.new(max_concurrent)
        @max_seconds = Argument.integer(:max_seconds, max_seconds, from: 1)
        @sample_type_names = sample_type_names
        profiler = MemprofilerPprof.profiler
        @on_demand = collector ? OnDemand.new(profiler) : profiler.on_demand
      end

      # @param env [Hash] a Rack environment
      # @return [Array] status, headers and body
      def call(env)
        method = env["REQUEST_METHOD"]
        return Response.not_allowed unless %w[GET HEAD].include?(method)

        head = method == "HEAD"
        response = answer(env, head)
        head ? Response.without_body(response) : response
      end

      private

      def answer(env, head)
        return Response.error(403, @access.refusal(env)) unless @access.permit?(env)
        return Response.off unless @collector || MemprofilerPprof.profiler.enabled?

        Service.announce
        MemprofilerPprof.without_profiling { respond(env, head) }
      rescue Query::Invalid => e
        Response.error(400, e.message)
      rescue Cluster::Refusal => e
        Response.error(e.status, e.message)
      rescue MemprofilerPprof::Error, ThreadError => e
        Response.error(503, "#{e.message} (#{e.class})")
      end

      def respond(env, head)
        name = env["PATH_INFO"].to_s.delete_prefix("/").delete_suffix("/")
        case name
        when "" then index(env)
        when "cmdline" then Response.text([$PROGRAM_NAME, *ARGV].map { |word| Response.utf8(word) }.join("\0"))
        when *OnDemand::PROFILES.keys then profile(name, Query.new(env["QUERY_STRING"], @max_seconds), head)
        when *PAGES then page(name, env, head)
        when *OTHERS.keys then send(OTHERS.fetch(name), env, head)
        else
          names = [*PAGES, *OTHERS.keys, *OnDemand::PROFILES.keys].join(", ")
          Response.error(404, "There is no #{name.inspect} here, only #{names} and cmdline.")
        end
      end

      def index(env)
        collector = running_collector
        Response.html(IndexPage.new(env, collector, @max_seconds, cluster(collector).pids).to_s)
      end

      def profile(name, query, head)
        with_collector(query, head, Response.profile(name, "")) do |collector|
          answers = ask(name, query, collector)
          next answers.mark(Response.profile(name, answers.bytes)) unless query.debug

          answers.mark(Response.text(StackText.new(answers.profile, OnDemand::PROFILES.fetch(name)).to_s))
        end
      end

      def page(name, env, head)
        # Loaded only here, since most programs are never asked for a page.
        %w[flamegraph leaks report].each { |page| require "ruby_memprofiler_pprof/rack/#{page}_page" }
        query = PageQuery.new(name, env["QUERY_STRING"], @max_seconds)
        query.check_value if head && name != "leaks"
        with_collector(query, head, Response.html("")) do |collector|
          answers = ask(SOURCES.fetch(name), query, collector, by: query.by, limit: query.limit)
          answers.mark(show(name, answers, query, env["SCRIPT_NAME"]).response)
        end
      end

      def retainers(env, head)
        # Loaded only here, as the pages are.
        %w[page query].each { |part| require "ruby_memprofiler_pprof/rack/retainers_#{part}" }
        query = RetainersQuery.new(env["QUERY_STRING"], @max_seconds)
        with_collector(query, head, Response.empty(query.format)) do |collector|
          answers = answers(query.pid, query.request, collector)
          answers.mark(RetainersPage.new(answers, query, env["SCRIPT_NAME"]).response)
        end
      end

      def memory(env, head)
        # Loaded only here, as the pages are.
        %w[page query].each { |part| require "ruby_memprofiler_pprof/rack/memory_#{part}" }
        query = MemoryQuery.new(env["QUERY_STRING"], @max_seconds)
        with_collector(query, head, Response.empty(query.format)) do |collector|
          answers = answers(query.pid, query.request, collector)
          answers.mark(MemoryPage.new(answers, query, env["SCRIPT_NAME"]).response)
        end
      end

      def cpu(env, head)
        query = Query.new(env["QUERY_STRING"], @max_seconds)
        return without_profile(query, Response.profile("profile", ""), running_collector) if head

        seconds = query.seconds || [OnDemand::CPU_SECONDS, @max_seconds].min
        request = OnDemand::Request.new(name: "profile", seconds: seconds)
        @gate.enter do
          answers = answers(query.pid, request, running_collector)
          text = Response.text(answers.profile.to_folded) if query.debug
          answers.mark(text || Response.profile("profile", answers.bytes))
        end || Response.too_many(@gate.limit)
      end

      def show(name, answers, query, path)
        case name
        when "flamegraph" then FlamegraphPage.new(answers.profile, query, answers.subject)
        when "leaks" then LeaksPage.new(answers, query, path)
        else ReportPage.new(name == "diff" ? answers.pair : [answers.profile], query, path, answers.subject)
        end
      end

      # @param empty [Array] the response without its body
      def with_collector(query, head, empty)
        collector = running_collector
        return not_running if collector.nil?
        return without_profile(query, empty, collector) if head

        @gate.enter { yield collector } || Response.too_many(@gate.limit)
      end

      # The answer to a HEAD request.
      def without_profile(query, empty, collector)
        cluster(collector).check(query.pid)
        query.debug ? Response.text("") : empty
      end

      # @return [Answers] of the process or processes that the query names
      def ask(name, query, collector, **options)
        request = OnDemand::Request.new(name: name, seconds: query.seconds, gc: query.gc, names: @sample_type_names,
                                        **options)
        answers(query.pid, request, collector)
      end

      def answers(pid, request, collector)
        options = profilers_own?(collector) ? MemprofilerPprof.config.flush_options : {}
        cluster(collector).ask(pid, request) { @on_demand.answer(request, collector, wait: method(:sleep), **options) }
      end

      # The other processes answer for their own profilers, not for other collectors that they may have.
      def cluster(collector)
        Cluster.new(profilers_own?(collector) ? MemprofilerPprof.profiler.siblings : {})
      end

      # Whether it is that of the setting, and runs.
      def profilers_own?(collector)
        profiler = MemprofilerPprof.profiler
        profiler.running? && profiler.collector.equal?(collector)
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
