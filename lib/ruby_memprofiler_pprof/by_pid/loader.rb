# frozen_string_literal: true

# What a process runs that the profiler is brought into, in a thread of its own: {Payload} puts this file's text, and an
# argument for it, into the file that is loaded. What opens or reads a file gives the GVL away, and beside a thread that
# computes it comes back only after 100 ms. So there is only one other file, which is read by system calls that keep it;
# and the answer is the text of a symbolic link, which is made without giving it away.
Module.new do
  class << self
    # Leaves the answer, and ends the thread, so that the file does not count as loaded.
    # @param order [Hash{Symbol => Object}] the method of {Attached} to call, what it needs, and where the answer goes
    def run(order)
      # In a child that was forked meanwhile nobody has asked for it.
      if Process.pid == order.fetch(:pid)
        Thread.current.name = "ruby_memprofiler_pprof attach"
        leave_group
        # A thread inherits what its starter masks, and then nobody could kill it, nor those that it starts.
        Thread.handle_interrupt(Object => :immediate) { serve(order) }
      end
    rescue SystemCallError
      # The tool has gone.
      nil
    ensure
      Thread.exit
    end

    private

    # A program may wait for all threads of a group of its own.
    def leave_group
      ThreadGroup::Default.add(Thread.current)
    rescue ThreadError
      # The group is enclosed.
      nil
    end

    def serve(order)
      File.symlink(answer(order), order.fetch(:answer))
      build_index
    end

    def answer(order)
      check_version(order.fetch(:version))
      load(order) unless defined?(::MemprofilerPprof::Attached)
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

    def load(order)
      # The program has loaded the gem itself, and so knows where its files are.
      return require("ruby_memprofiler_pprof/attached") if defined?(::MemprofilerPprof::Collector) && !begun?

      sources = texts(order.fetch(:sources), order.fetch(:files))
      # Not Kernel#require, to which RubyGems and others add searches.
      evaluate("require_relative #{order.fetch(:extension).dump}", sources.keys.first)
      evaluate_rest(sources)
      # For what is loaded later, and requires them.
      $LOADED_FEATURES.concat(sources.keys)
      $LOAD_PATH.push(order.fetch(:library)) unless $LOAD_PATH.include?(order.fetch(:library))
      @index = true
    end

    # A child that is forked meanwhile has some of them. When it is attached to, it goes on from there.
    def evaluate_rest(sources)
      evaluated = ::MemprofilerPprof.class_eval { @evaluated ||= [] }
      sources.except(*evaluated).each do |path, text|
        evaluate(text, path)
        evaluated << path
      end
    end

    def begun?
      ::MemprofilerPprof.instance_variable_defined?(:@evaluated)
    end

    # From Ruby 3.3 on, the first search after these lists have changed resolves links in all new names, and gives the
    # GVL away for each: this is done here, so that the program's next `require` does not have to.
    def build_index
      Thread.new { require "ruby_memprofiler_pprof/version" }.name = "ruby_memprofiler_pprof index" if @index
    end

    # @return [Hash{String => String}] texts by names
    def texts(path, sizes)
      text = read(path, sizes.values.sum)
      start = 0
      sizes.transform_values do |size|
        text.byteslice(start, size).force_encoding(Encoding::UTF_8).tap { start += size }
      end
    end

    # As Kernel#syscall warns in a verbose program, that waits instead.
    def read(path, size)
      return File.binread(path, size) if $VERBOSE || !RUBY_PLATFORM.start_with?("x86_64-linux")

      # open with O_RDONLY and O_CLOEXEC, and read.
      file = IO.for_fd(syscall(2, path.dup, 0o2000000))
      text = (" " * size).b
      raise EOFError, "#{path} is too short" unless syscall(0, file.fileno, text, size) == size

      text
    ensure
      file&.close
    end

    def evaluate(text, path)
      RubyVM::InstructionSequence.compile(text, path, path).eval
    end
  end
end
