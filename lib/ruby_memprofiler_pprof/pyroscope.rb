# frozen_string_literal: true

require "ruby_memprofiler_pprof"
require "ruby_memprofiler_pprof/background_thread"
require "ruby_memprofiler_pprof/pyroscope/client"
require "ruby_memprofiler_pprof/pyroscope/delivery"
require "ruby_memprofiler_pprof/pyroscope/series"

module MemprofilerPprof
  # Sends profiles to Grafana Pyroscope's `POST /ingest`, in a thread of its own: the caller never waits and never sees
  # an error. What cannot be sent is retried, and finally dropped and logged.
  #
  # Pyroscope knows only Go's names of the values, so give the flusher `sample_type_names: :go`.
  #
  # A forked child has a thread of its own, and sends nothing that the parent has queued. When the process exits, what
  # is left is sent within `exit_timeout` seconds, which begin at the same time for all.
  #
  # @example
  #   require "ruby_memprofiler_pprof/pyroscope"
  #   pyroscope = MemprofilerPprof::Pyroscope.new(url: "http://pyroscope:4040", app_name: "shop", tags: { env: "prod" })
  #   collector = MemprofilerPprof::Collector.new.start
  #   MemprofilerPprof::BlockFlusher.new(collector, interval: 15, on_flush: pyroscope, sample_type_names: :go).start!
  class Pyroscope
    # A profile to be sent, and the name of its series.
    Job = Struct.new(:profile, :name)
    # Seconds to wait for the thread to end: Ruby loses a kill that reaches a thread in a finalizer.
    JOIN_TIMEOUT = 2
    private_constant :Job, :JOIN_TIMEOUT

    # @return [Float] when the process, which exits, began to wait for what is left
    # @api private
    def self.exiting_since
      @exiting_since ||= Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # @param url [String] of the server, with http or https; `/ingest` is added
    # @param app_name [String] the service's name: letters, digits, `_`, `.`, `-`, `/`
    # @param tags [Hash{String, Symbol => String, #call}] labels for all profiles; a callable is called for each
    #   profile. A value must not contain `,`, `=`, `{` or `}`
    # @param auth_token [String, nil] is sent as bearer token
    # @param basic_auth [Array(String, String), nil] user and password
    # @param tenant_id [String, nil] is sent as X-Scope-OrgID
    # @param timeout [Numeric] seconds that an attempt may take, from connecting to the response's status
    # @param retries [Integer] how often to retry after a connection error, a timeout, or status 408, 429 or 5xx
    # @param retry_wait [Numeric] seconds before the second attempt; twice as long before each further one, at most 60,
    #   give or take half of it at random. If the server's Retry-After (seconds or a date) is longer, that, up to 60
    # @param queue_size [Integer] how many profiles may wait; past it the oldest is dropped
    # @param exit_timeout [Numeric] for how many seconds at most an exiting process waits for what is left
    # @param logger [#error, #warn, #info, nil] nil writes warnings and errors to stderr
    # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
    def initialize(url:, app_name:, tags: {}, auth_token: nil, basic_auth: nil, tenant_id: nil, timeout: 10, retries: 4,
                   retry_wait: 1, queue_size: 8, exit_timeout: 5, logger: nil)
      timeout = Argument.seconds(:timeout, timeout)
      client = Client.new(url, timeout: timeout, auth_token: auth_token, basic_auth: basic_auth, tenant_id: tenant_id)
      @app_name = app_name
      self.tags = tags
      @delivery = Delivery.new(client, retries: Argument.integer(:retries, retries),
                                       retry_wait: Argument.seconds(:retry_wait, retry_wait))
      @queue_size = Argument.integer(:queue_size, queue_size, from: 1)
      @exit_timeout = Argument.seconds(:exit_timeout, exit_timeout)
      @logger = logger || StderrLogger
      @mutex = Mutex.new
      @changed = ConditionVariable.new
      reset
    end

    # @param tags [Hash] as for {#initialize}, for the profiles that come from now on
    # @return [void]
    # @raise [ArgumentError, TypeError] naming the tag, its value and what is allowed
    def tags=(tags)
      @series = Series.new(@app_name, tags)
    end

    # Takes a profile to be sent. Does not wait, and does not raise.
    #
    # @param profile [ProfileData]
    # @return [void]
    def call(profile)
      MemprofilerPprof.without_profiling do
        warn_of_names unless profile.sample_type_names == :go
        enqueue(Job.new(profile, @series.name))
      end
      nil
    rescue StandardError => e
      log(:error, "a profile was not queued: #{e.class}: #{e.message}")
    end

    # Waits until every profile is sent or given up.
    #
    # @param timeout [Numeric] seconds to wait at most
    # @return [Boolean] whether nothing is left
    def drain(timeout = @exit_timeout)
      deadline = now + timeout
      @mutex.synchronize do
        @changed.wait(@mutex, [deadline - now, 0.001].max) until idle? || now >= deadline
        idle?
      end
    end

    # Sends what is left, and ends the thread. A further profile starts it again.
    #
    # @param timeout [Numeric] seconds to wait at most; what is left then is dropped
    # @return [self]
    def stop!(timeout = @exit_timeout)
      stop_by(now + timeout, timeout)
      self
    end

    # Lets the thread end when every profile is sent or given up, also those that come late. Does not wait.
    # @return [void]
    # @api private
    def retire
      @mutex.synchronize do
        @retired = true
        @changed.broadcast
      end
    end

    # @return [Hash{Symbol => Integer}] profiles since the process began: `sent`; `dropped` because the queue was full;
    #   `failed` after all attempts; `waiting`
    def stats
      @mutex.synchronize { { **@counts, waiting: @queue.size + (@sending ? 1 : 0) } }
    end

    # Called in a forked child, which lacks the thread.
    # @api private
    def after_fork
      reset
    end

    # Called when the process exits, after the last flushes.
    # @api private
    def finish
      stop_by(Pyroscope.exiting_since + @exit_timeout, @exit_timeout)
    end

    private

    def reset
      @queue = []
      @counts = { sent: 0, dropped: 0, failed: 0 }
      @sending = false
      @full = false
      @delivery.reset
      @thread = nil
    end

    # @param timeout [Numeric] what the log says
    def stop_by(deadline, timeout)
      left = drain([deadline - now, 0].max) ? 0 : stats[:waiting]
      RunningFlushers.remove_sink(self)
      thread = take_thread
      if left.positive?
        thread&.kill
        problem = @delivery.problem
        log(:error, "profiles not sent within #{timeout} s: #{left}#{"; the last attempt: #{problem}" if problem}")
      end
      BackgroundThread.ended?(thread, JOIN_TIMEOUT) if thread
    end

    def idle?
      @queue.empty? && !@sending
    end

    def enqueue(job)
      full = @mutex.synchronize do
        @queue << job
        dropped = @queue.size > @queue_size
        @counts[:dropped] += 1 if dropped && @queue.shift
        first = dropped && !@full
        @full ||= dropped
        start_thread
        @changed.broadcast
        first
      end
      log(:warn, "the queue of #{@queue_size} profiles is full: the oldest are dropped for now") if full
    end

    def start_thread
      return if @thread&.alive?

      RunningFlushers.add_sink(self)
      @thread = BackgroundThread.start("ruby_memprofiler_pprof uploader") { work }
    end

    def work
      while (job = next_job)
        begin
          outcome = send_job(job)
        rescue StandardError, NoMemoryError, SystemStackError => e
          outcome = :failed
          log(:error, "a profile was not sent: #{e.class}: #{e.message}")
        ensure
          done(outcome)
        end
      end
    end

    def take_thread
      @mutex.synchronize do
        @queue.clear
        @changed.broadcast
        @thread.tap { @thread = nil }
      end
    end

    # @return [Job, nil] nil when the thread is to end
    def next_job
      @mutex.synchronize do
        @changed.wait(@mutex) while @queue.empty? && !@retired && @thread.equal?(Thread.current)
        next unless @thread.equal?(Thread.current)
        next forget_thread if @queue.empty?

        @sending = true
        @queue.shift
      end
    end

    # A profile that comes late starts another one.
    def forget_thread
      RunningFlushers.remove_sink(self)
      @thread = nil
    end

    def done(outcome)
      @mutex.synchronize do
        @counts[outcome] += 1 if outcome
        @full = false if outcome == :sent
        @sending = false
        @changed.broadcast
      end
    end

    # @return [Symbol] the outcome, :sent or :failed
    def send_job(job)
      attempts = @delivery.call(job.name, job.profile)
      return :sent unless @delivery.problem

      log(:error, "a profile was not sent, after #{attempts} attempt#{"s" if attempts > 1}: #{@delivery.problem}")
      :failed
    end

    def warn_of_names
      return if @warned

      @warned = true
      log(:warn, "Pyroscope knows only Go's names: give the flusher, or the collector, sample_type_names: :go")
    end

    def log(severity, message)
      @logger.public_send(severity, "#{self.class}: #{message}")
      nil
    rescue StandardError
      nil
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
