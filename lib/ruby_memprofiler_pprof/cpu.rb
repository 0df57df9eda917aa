# frozen_string_literal: true

require "ruby_memprofiler_pprof/atomic_file"
require "ruby_memprofiler_pprof/block_endings"
require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # Where the CPU time of this process goes: a profile per call path, as Go's, in samples and nanoseconds.
  #
  # Each thread is sampled in its own CPU time, so what waits is not in the profile. The sum of all samples is the CPU
  # time that the system counted. At most one such profile is taken at a time; the heap can be profiled meanwhile.
  #
  # @example
  #   MemprofilerPprof::CPU.profile(out: "cpu.pb.gz") { Report.generate }
  module CPU
    class << self
      # Starts sampling.
      #
      # @param frequency [Integer] samples per second of a thread's CPU time, 1..10000. The kernel's clock allows 100,
      #   250 or 1,000; beyond that samples stand for more time each
      # @param labels [Boolean] whether the labels of {MemprofilerPprof.with_labels} are on the samples
      # @param thread_names [Boolean] whether each sample has the name of its thread, as the label `thread`
      # @param only [Symbol, nil] `:thread` samples the calling thread only; with Ruby's M:N threads, those that share
      #   its native thread, too
      # @param signal [Integer, nil] the number of the signal that timers send; nil stands for a real-time signal that
      #   is not in use. What handled it before is still called for signals that are not from these timers; if nothing
      #   did, they do nothing from now on
      # @return [void]
      # @raise [ArgumentError, TypeError] naming the option, its value and what is allowed
      # @raise [Error] if it runs already, or the system has no timers on CPU time
      # @raise [RactorError] outside of the main Ractor
      def start(frequency: 100, labels: true, thread_names: false, only: nil, signal: nil)
        options = { frequency: frequency, labels: labels, thread_names: thread_names, only: only, signal: signal }
        sampler.start(options, -> { threads(only) })
        nil
      end

      # Ends sampling. {flush} still returns what was sampled. Harmless if it does not run.
      # @return [void]
      def stop
        @sampler&.stop if main_ractor?
        nil
      end

      # Takes a profile of the CPU time since the start or the last flush.
      #
      # @param out [String, #to_path, nil] a file to write it to, replacing an existing one. A missing directory is
      #   made before
      # @param options [Hash{Symbol => Object}] `yield_gvl`, `proactively_yield_gvl`, `max_hold` and `max_duration` as
      #   for {Collector#flush}
      # @return [ProfileData]
      # @raise [NotStartedError] before the first {start}
      # @raise [RactorError] outside of the main Ractor
      # @raise [SystemCallError] if the file cannot be written
      def flush(out: nil, **options)
        AtomicFile.prepare(out)
        profile = sampler.flush(options, settings&.tags)
        profile.write(out) if out
        profile
      end

      # @return [Boolean] whether CPU time is sampled
      def running?
        main_ractor? && @sampler&.running? ? true : false
      end

      # @return [Hash{Symbol => Object}] `period_nsecs`, `signal`, `signal_taken` (whether something else has replaced
      #   its handler), the number of `threads` with timers, of `refused_timers`, of `samples` since the start, of
      #   `signals` in this process, and before its fork in its parent, of different `stacks` since the last flush, of
      #   `lost_stacks`, and the `bytes` held
      # @raise [RactorError] outside of the main Ractor
      def stats
        sampler.stats
      end

      # Profiles the CPU time that the whole process uses while the block runs; with `only: :thread`, that of the
      # calling thread. In a child that another thread forks meanwhile, sampling stops.
      #
      # @example
      #   puts MemprofilerPprof::CPU.profile(frequency: 1000, only: :thread) { parse(file) }.profile.report
      # @param out [String, #to_path, nil] as for {flush}, made before the block is called
      # @param options [Hash{Symbol => Object}] as for {start}
      # @return [ProfileData]
      # @raise as {start} and {flush}
      def profile(out: nil, **options)
        raise ArgumentError, "profile needs a block" unless block_given?

        AtomicFile.prepare(out)
        started = false
        ending = BlockEndings.enter { stop if started }
        begin
          BlockEndings.begin do
            start(**options)
            started = true
          end
          yield
        ensure
          stop if started
          profile = flush if started
        end
        profile.write(out) if out
        profile
      ensure
        BlockEndings.leave(ending)
      end

      # The options of {start} that are settings, for who starts on behalf of the process's profiler.
      # @param config [Configuration, nil]
      # @return [Hash{Symbol => Boolean}]
      # @api private
      def configured(config = settings)
        config ? { labels: config.labels, thread_names: config.thread_names } : {}
      end

      # Called in a forked child.
      # @api private
      def after_fork
        @sampler&.after_fork
      rescue Error => e
        StderrLogger.warn(e.message)
      end

      private

      # Made at its first use, since few programs need it. No other Ractor can see it.
      def sampler
        raise RactorError, "CPU time is sampled from the main Ractor" unless main_ractor?

        @sampler ||= Sampler.new
      end

      # @return [Configuration, nil] nil if the environment has a wrong one, which nobody has asked for here
      def settings
        MemprofilerPprof.config
      rescue ArgumentError
        nil
      end

      def main_ractor?
        Ractor.current.equal?(Ractor.main)
      end

      def threads(only)
        return [[Thread.current, nil]] if only

        Thread.list.map { |thread| [thread, thread.native_thread_id] }
      end
    end
  end
end
