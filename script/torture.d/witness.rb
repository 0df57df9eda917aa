# frozen_string_literal: true

module Torture
  # An error that the torture has found.
  class Wrong < StandardError; end

  # A collector whose profiles are compared with the truth.
  class Witness
    attr_reader :collector, :allocated, :retained, :name

    # @param ledger [Boolean] whether its flushes are never ended by an exception, so that no profile gets lost
    def initialize(name, ledger: true, **options)
      @name = name
      @ledger = ledger
      @lock = Mutex.new
      @collector = MemprofilerPprof::Collector.new(sample_rate: 1.0, max_heap_samples: 10_000_000,
                                                   max_stack_bytes: 1 << 32, **options).start
      reset
    end

    def ledger?
      @ledger
    end

    # For a forked child. If the stack ended in its parent, it may turn out here that a collection was missed.
    def after_fork
      stack_ends = @stack_ends
      reset
      @stack_ends = stack_ends
    end

    # Forgets earlier reports.
    def reset
      @allocated = Hash.new(0)
      @missed = missed
      @stack_ends = stack_ends
      self
    end

    def flush(**options)
      @lock.synchronize { read(@collector.flush(**options).pprof_data) }
    end

    # How many collections were missed since the last reset.
    def newly_missed
      missed - @missed
    end

    # How often its hook was removed for a moment since the last reset, because a machine stack was about to end.
    def newly_aside
      stack_ends - @stack_ends
    end

    def stop
      @collector.stop
      @collector.flush
    end

    private

    def missed
      @collector.stats[:missed_collections]
    end

    def stack_ends
      @collector.stats[:stack_ends]
    end

    # Not on the main thread: zlib takes a signal that arrives at its last byte for a broken stream.
    def read(bytes)
      sums = Thread.new { Sums.new(bytes) }.value
      @allocated.merge!(sums.allocated) { |_, before, more| before + more }
      @retained = sums.retained
    end
  end
end
