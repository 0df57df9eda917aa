# frozen_string_literal: true

module MemprofilerPprof
  # Answers requests for profiles of this process, at the Rack endpoint or at the socket. Keeps what lasts from one
  # request to the next: the reader of `delta_heap`, and the profiles in memory for `leaks`.
  # @api private
  class OnDemand
    # The profiles, and which value a viewer shows first.
    PROFILES = { "heap" => :retained_size, "allocs" => :allocations_size, "delta_heap" => :retained_size }.freeze
    # What can be asked for: a profile, two profiles for a comparison (see {split}), the text of `leaks`, who holds what
    # is alive, where the memory is, or a profile of CPU time.
    NAMES = [*PROFILES.keys, "diff", "leaks", "retainers", "memory", "profile"].freeze
    # The forms of `retainers`; `both` is JSON and pprof (see {split}).
    FORMATS = { "text" => :text, "json" => :json, "pprof" => :pprof, "both" => :both }.freeze
    # The greatest values of parameters.
    MOST_SECONDS = 60
    MOST_SITES = 1000
    MOST_TIMEOUT = 600
    # Over how many seconds to compare if nothing else is asked for.
    DIFF_SECONDS = 10
    # Over how many to sample CPU time, as in Go.
    CPU_SECONDS = 30
    # The parameters of a {Request} as text: what is allowed, and the value; nil if it is not.
    PARAMETERS = {
      "seconds" => ["a whole number from 1 to #{MOST_SECONDS}", ->(text) { OnDemand.number(text, MOST_SECONDS) }],
      "gc" => ["0 or 1", { "0" => false, "1" => true }],
      "names" => ["ruby or go", { "ruby" => :ruby, "go" => :go }],
      "by" => ["one of #{Profile::Aggregation::GROUPINGS.join(", ")}",
               Profile::Aggregation::GROUPINGS.to_h { |by| [by.name, by] }],
      "limit" => ["a whole number from 1 to #{MOST_SITES}", ->(text) { OnDemand.number(text, MOST_SITES) }],
      "site" => ["FILE:LINE or FILE", ->(text) { text unless text.empty? }],
      "class" => ["the name of a class", ->(text) { text unless text.empty? }],
      "timeout" => ["a whole number from 1 to #{MOST_TIMEOUT}", ->(text) { OnDemand.number(text, MOST_TIMEOUT) }],
      "in_process" => ["0 or 1", { "0" => false, "1" => true }],
      "quick" => ["0 or 1", { "0" => false, "1" => true }],
      "format" => ["one of #{FORMATS.keys.join(", ")}", FORMATS]
    }.freeze
    # Those of `memory`, which has no profile.
    MEMORY_PARAMETERS = { **PARAMETERS, "format" => ["text or json", FORMATS.slice("text", "json")] }.freeze
    # The default of `timeout`.
    RETAINERS_TIMEOUT = 60
    # Calls the block.
    AT_ONCE = ->(&flush) { flush.call }
    private_constant :AT_ONCE

    class << self
      # @param text [String]
      # @return [Integer, nil] nil if it is none in 1..limit
      def number(text, limit)
        number = Integer(text, 10, exception: false)
        number if number&.between?(1, limit)
      end

      # @return [String] the answer to `diff`: the length of the first profile in four bytes, and both profiles
      def join(old, new)
        [old.bytesize].pack("N") << old.b << new.b
      end

      # @param body [String] what {join} returned
      # @return [Array(String, String)] both parts
      def split(body)
        length = body.unpack1("N")
        [body.byteslice(4, length), body.byteslice((4 + length)..)]
      end
    end

    # @param profiler [DefaultProfiler] which may write files
    def initialize(profiler)
      @profiler = profiler
      @mutex = Mutex.new
      @searching = Mutex.new
    end

    # @param request [Request]
    # @param collector [Collector, nil] a profile of CPU time needs none
    # @param wait [#call] waits for so many seconds
    # @param turn [#call] calls its block when the collector may be flushed
    # @param flush_options [Hash{Symbol => Object}] as for {Collector#flush}
    # @return [String]
    # @raise [Error] as {Collector#flush}, {Collector#open_reader}, {Collector#retainers} and {CPU.start}
    def answer(request, collector, wait: method(:sleep), turn: AT_ONCE, **flush_options)
      return cpu(request, wait) if request.name == "profile"
      return turn.call { leaks(request, collector) } if request.name == "leaks"
      return retainers(request, collector) if request.name == "retainers"
      return turn.call { memory(request, collector) } if request.name == "memory"

      options = { **flush_options, gc: request.gc ? true : false, **{ sample_type_names: request.names }.compact }
      return pair(request, collector, wait, turn, options) if request.name == "diff"

      profile(request, collector, wait, turn, options).pprof_data
    end

    # Ends the series in memory.
    # @return [void]
    def close
      @recent&.close
    end

    private

    def profile(request, collector, wait, turn, options)
      options = { **options, default_sample_type: PROFILES.fetch(request.name) }
      if request.seconds
        collector.open_reader do |reader|
          wait.call(request.seconds)
          turn.call { reader.flush(**options) }
        end
      elsif request.name == "delta_heap"
        turn.call { delta_reader(collector).flush(**options) }
      else
        turn.call { collector.peek(**options) }
      end
    end

    def cpu(request, wait)
      CPU.profile(**CPU.configured(@profiler.config)) { wait.call(request.seconds || CPU_SECONDS) }.pprof_data
    end

    # The second profile has the allocations since the first, which bound what was born in between (see
    # {Report::Difference}).
    def pair(request, collector, wait, turn, options)
      collector.open_reader do |reader|
        old = turn.call { reader.flush(**options) }
        wait.call(request.seconds || DIFF_SECONDS)
        OnDemand.join(old.pprof_data, turn.call { reader.flush(**options) }.pprof_data)
      end
    end

    def delta_reader(collector)
      @mutex.synchronize do
        unless collector.equal?(@delta_reader&.collector)
          @delta_reader&.close
          @delta_reader = nil
          @delta_reader = collector.open_reader
        end
        @delta_reader
      end
    end

    def leaks(request, collector)
      # Loaded only here, since few programs are asked for it.
      require "ruby_memprofiler_pprof/on_demand/leak_report"
      series = written(collector) || recent(collector)
      LeakReport.new(series.profiles, series.interval, **{ by: request.by, limit: request.limit }.compact).to_s
    end

    # Not in turn: it hardly occupies this process, but may take long.
    def retainers(request, collector)
      raise RetainersError, "Somebody else is asking who holds the heap; try again later." unless @searching.try_lock

      begin
        retainers = collector.retainers(**request.question)
      ensure
        @searching.unlock
      end
      render(retainers, request.format)
    end

    def render(retainers, format)
      case format
      when :json then retainers.to_json
      when :pprof then retainers.pprof_data
      when :both then OnDemand.join(retainers.to_json, retainers.pprof_data)
      else retainers.to_s
      end
    end

    def memory(request, collector)
      memory = collector.memory(full: !request.quick)
      request.format == :json ? memory.to_json : memory.to_s
    end

    # @return [FileFlusher, nil] which writes this collector's profiles to files
    def written(collector)
      flusher = @profiler.flusher
      flusher if flusher.is_a?(FileFlusher) && flusher.collector.equal?(collector)
    end

    def recent(collector)
      require "ruby_memprofiler_pprof/on_demand/recent_profiles"
      @mutex.synchronize do
        unless @recent&.of?(collector)
          @recent&.close
          @recent = nil
          # Another collector has nothing to do with the settings.
          options = collector.equal?(@profiler.collector) ? @profiler.config.flush_options : {}
          @recent = RecentProfiles.new(collector, @profiler.logger, options)
        end
        @recent
      end
    end
  end
end

require "ruby_memprofiler_pprof/on_demand/request"
