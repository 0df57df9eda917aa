# frozen_string_literal: true

module MemprofilerPprof
  # A consumer of a collector's allocations that has intervals of its own: each {#flush} reports the allocations since
  # its own last one, whatever the collector's other readers do. {Collector#open_reader} makes one.
  #
  # @example
  #   collector.open_reader do |reader|
  #     work
  #     reader.flush.write("work.pprof")
  #   end
  class Reader
    # @return [Collector]
    attr_reader :collector

    # @param collector [Collector]
    # @param number [Integer] by which the collector knows it
    # @api private
    def initialize(collector, number)
      @collector = collector
      @number = number
    end

    # Takes a profile of the objects alive now and of the allocations since this reader's last flush (at first, since it
    # was opened).
    # @param options [Hash{Symbol => Object}] as for {Collector#flush}
    # @return [ProfileData]
    # @raise [Error] if it is closed; otherwise as {Collector#flush}
    def flush(**options)
      check
      @collector.__send__(:flush_for, @number, **options)
    end

    # @param options [Hash{Symbol => Object}] as for {Collector#retainers}
    # @return [Retainers] who holds what is alive, whatever the reader's interval
    # @raise [Error] if it is closed; otherwise as {Collector#retainers}
    def retainers(**options)
      check
      @collector.retainers(**options)
    end

    # Closes it, so that the collector keeps nothing for it any more. Harmless if it is closed.
    # @return [void]
    def close
      number = @number
      @number = nil
      @collector.__send__(:remove_reader, number) if number
    end

    # @return [Boolean]
    def closed?
      @number.nil?
    end

    # @return [Boolean] whether it is open and its collector samples, so that a flusher can be given a reader
    def running?
      !closed? && @collector.running?
    end

    # @return [String] for people
    def inspect
      "#<#{self.class} #{closed? ? "closed" : @number} of #{@collector.inspect}>"
    end

    private

    def check
      raise Error, "the reader is closed" if closed?
    end
  end
end
