# frozen_string_literal: true

require "timeout"

module Torture
  # Work in forked processes: for what kills a process, and to see that they live on with the collectors they inherit.
  module Child
    # Held while a process forks. A child that is forked while zlib works without the GVL inherits a buffer of which the
    # VM does not know where it has gone, and frees what is no memory.
    FORKING = Mutex.new
    # Held while another tool traces allocations. In a child it would go on doing so.
    TRACING = Mutex.new

    module_function

    # Runs the block in a child. It must return, or end the process in its own way.
    # @param what [String] for the message
    # @param dies [Proc] whether the child has died as it should
    # @param untraced [Boolean] whether no other tool may trace allocations in it
    # @raise [Wrong]
    def run(what, dies: ->(status) { status.success? }, untraced: false, &block)
      start = -> { FORKING.synchronize { fork { FORKING.unlock && inside(what, &block) } } }
      pid = untraced ? TRACING.synchronize(&start) : start.call
      status = wait(pid, what)
      raise Wrong, "#{what}: a forked child ended with #{status}" unless dies.call(status)
    end

    def inside(what)
      # Nothing of the parent's at_exit business.
      yield
      $stderr.flush
      exit!(0)
    rescue SystemExit, SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException
      warn "In a forked child (#{what}): #{e.full_message(highlight: false)}"
      # Ruby's own failures have the status 1.
      exit!(3)
    end

    def wait(pid, what)
      deadline = Torture.now + PATIENCE
      loop do
        _, status = Process.wait2(pid, Process::WNOHANG)
        return status if status

        overdue(pid, what) if Torture.now > deadline
        sleep 0.01
      end
    end

    def overdue(pid, what)
      Backtraces.of_process(pid)
      Process.kill(:KILL, pid)
      Process.wait(pid)
      raise Hang, "#{what}: a forked child did not end within #{PATIENCE} s"
    end
  end

  # For how many seconds to wait for what takes one. A machine with other work may be hundreds of times slower, and what
  # hangs does so for ever.
  PATIENCE = 300

  # Something did not end.
  class Hang < StandardError; end

  # Where everything stands.
  module Backtraces
    module_function

    def of_threads(threads = Thread.list)
      threads.each { |thread| warn "#{thread.inspect}:", *thread.backtrace.to_a.first(30).map { |line| "  #{line}" } }
    end

    # With gdb, if it is there.
    def of_process(pid)
      Process.kill(:QUIT, pid)
      sleep 1
      system("gdb", "-p", pid.to_s, "-batch", "-ex", "thread apply all bt 30", out: :err, err: File::NULL)
    rescue Errno::ESRCH
      nil
    end

    # From now on SIGQUIT shows them.
    def on_quit
      trap("QUIT") { of_threads }
    end
  end
end
