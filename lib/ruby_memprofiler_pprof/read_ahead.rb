# frozen_string_literal: true

module MemprofilerPprof
  # Does with each of many files what takes long without the GVL, several at a time, and hands the results out one by
  # one, in order.
  #
  # @api private
  class ReadAhead
    include Enumerable

    # Whoever takes the results keeps up with no more.
    MOST_THREADS = 4

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
      @ahead ||= Etc.nprocessors.clamp(1, MOST_THREADS)
    end

    # The first one's result; a thread that fails is still among them.
    def take(threads)
      threads.first.value.tap { threads.shift }
    end

    def start(file)
      Thread.new do
        # Whoever waits for it gets the exception.
        Thread.current.report_on_exception = Thread.current.abort_on_exception = false
        @work.call(file)
      end
    end

    def wait(thread)
      thread.join
    rescue StandardError
      # Another file's exception has come first.
    end
  end

  private_constant :ReadAhead
end
