# frozen_string_literal: true

module MemprofilerPprof
  # Processes many files in a few threads, for work that mostly runs without the GVL, and yields the results one by one,
  # in order.
  #
  # @api private
  class ReadAhead
    include Enumerable

    # How many threads work while the consumer, itself a thread, has a result. It keeps up with no more.
    MOST_AHEAD = 4
    private_constant :MOST_AHEAD

    # @param files [Enumerable]
    # @yield [file] in a thread of its own
    def initialize(files, &work)
      @files = files
      @work = work
    end

    # Yields what the block returned for each file. The first file whose block raised ends it with that exception.
    def each
      threads = []
      @files.each do |file|
        threads << start(file)
        yield take(threads) if threads.size > ahead
      end
      yield take(threads) until threads.empty?
    ensure
      threads.each(&:kill).each { |thread| wait(thread) }
    end

    private

    def ahead
      require "etc"
      @ahead ||= Etc.nprocessors.clamp(1, MOST_AHEAD)
    end

    # The first one's result. A thread that fails stays in the list, for #each to wait for.
    def take(threads)
      threads.first.value.tap { threads.shift }
    end

    def start(file)
      Thread.new do
        # The exception is raised in the thread that waits for this one.
        Thread.current.report_on_exception = Thread.current.abort_on_exception = false
        @work.call(file)
      end
    end

    def wait(thread)
      thread.join
    rescue StandardError
      # Not raised: the exception of another file is on its way to the caller.
    end
  end

  private_constant :ReadAhead
end
