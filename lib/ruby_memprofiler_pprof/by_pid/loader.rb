# frozen_string_literal: true

# What a process runs that the profiler is brought into, in a thread of its own: {Payload} puts this file's text, and
# arguments for it, into one file. Each file that is read gives the GVL away, and beside a thread that computes it comes
# back only after 100 ms; so there is one, and the answer is the text of a symbolic link, which is made at once.
Module.new do
  class << self
    # Leaves the answer, and ends the thread, so that the file does not count as loaded.
    # @param order [Hash{Symbol => Object}] the method of {Attached} to call, what it needs, and where the answer goes
    # @param sources [Hash{String => String}] texts of files by their names, each after those that it requires
    def run(order, sources)
      # In a child that was forked meanwhile nobody has asked for it.
      if Process.pid == order.fetch(:pid)
        Thread.current.name = "ruby_memprofiler_pprof attach"
        File.symlink(answer(order, sources), order.fetch(:answer))
      end
    rescue SystemCallError
      # The tool has gone.
      nil
    ensure
      Thread.exit
    end

    private

    def answer(order, sources)
      check_version(order.fetch(:version))
      missing = sources.keys - $LOADED_FEATURES
      load(order, sources.slice(*missing), missing.size == sources.size) if missing.any?
      raise "it was not attached to" unless defined?(::MemprofilerPprof::Attached)

      "ok #{::MemprofilerPprof::Attached.public_send(*order.fetch(:call))}"
    rescue Exception => e # rubocop:disable Lint/RescueException
      # A link's text has at most 4095 bytes. Some messages list all there is.
      "#{e.message[0, 400]}#{place(e)}".b.tr("\0", " ")[0, 4000]
    end

    # The gem's own errors say what to do, wherever they come from.
    def place(error)
      own = defined?(::MemprofilerPprof::Error) && error.is_a?(::MemprofilerPprof::Error)
      " (#{error.class}, #{error.backtrace&.first})" unless own
    end

    def check_version(version)
      return if !defined?(::MemprofilerPprof::VERSION) || ::MemprofilerPprof::VERSION == version

      raise "it has loaded version #{::MemprofilerPprof::VERSION} of this gem, and this is #{version}: use that one"
    end

    def load(order, sources, whole)
      raise "it has loaded this gem from another place: use that one" if
        whole && defined?(::MemprofilerPprof::Collector)

      library = order.fetch(:library)
      $LOAD_PATH.push(library) unless $LOAD_PATH.include?(library)
      # What files require of each other is there already.
      $LOADED_FEATURES.concat(sources.keys)
      # Not Kernel#require, to which RubyGems and others add searches.
      evaluate("require_relative #{order.fetch(:extension).dump}", sources.keys.first)
      sources.each { |path, text| evaluate(text, path) }
    rescue Exception # rubocop:disable Lint/RescueException
      sources.each_key { |path| $LOADED_FEATURES.delete(path) }
      raise
    end

    def evaluate(text, path)
      RubyVM::InstructionSequence.compile(text, path, path).eval
    end
  end
end
