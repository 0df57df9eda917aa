# frozen_string_literal: true

module Torture
  # Work in forked processes: for what kills a process, and to check that children work with the collectors they
  # inherit.
  module Child
    # Held while a process forks. A child forked while zlib works without the GVL inherits a buffer that the VM has lost
    # track of, and frees an invalid pointer.
    FORKING = Mutex.new
    # Whether a child may crash that is forked while another thread is in a fiber. The VM then forgets the stack of that
    # fiber in place of the thread's own, whose memory a new thread of the child gets, and a collection marks what is
    # there. Seen on 3.1.2 without the gem, not on 3.3.8 and 4.0.5.
    UNSAFE_FIBERS = RUBY_VERSION < "3.3"
    # What ends a child in which Ruby jumps to the same instruction forever.
    STUCK = "XCPU"
    # Seconds after which to see whether it does, each time.
    LONG = 20
    # Held while another tool traces allocations, which would continue in a child.
    TRACING = Mutex.new

    module_function

    # Runs the block in a child. It must return, or end the process in its own way.
    # @param what [String] for the message
    # @param dies [Proc] whether the child ended as it should
    # @param untraced [Boolean] whether no other tool may trace allocations in it
    # @raise [Wrong]
    def run(what, dies: ->(status) { status.success? }, untraced: false, &block)
      start = -> { FORKING.synchronize { fork { FORKING.unlock && inside(what, &block) } } }
      pid = untraced ? TRACING.synchronize(&start) : start.call
      status = wait(pid, what)
      raise Wrong, "#{what}: a forked child ended with #{status}" unless dies.call(status)
    end

    # Runs the block, which resumes fibers.
    def in_fibers(&)
      UNSAFE_FIBERS ? FORKING.synchronize(&) : yield
    end

    def inside(what)
      # Skips the parent's at_exit handlers.
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
      check = Torture.now + LONG
      loop do
        _, status = Process.wait2(pid, Process::WNOHANG)
        return status if status

        overdue(pid, what) if Torture.now > deadline
        if Torture.now > check
          Process.kill(STUCK, pid) if Backtraces.stuck_in_ruby?(pid)
          check += LONG
        end
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

  # How many seconds to wait for what takes one. A machine under load may be hundreds of times slower, while a hang
  # lasts forever.
  PATIENCE = 300

  # Something did not end.
  class Hang < StandardError; end

  # Shows where every thread is.
  module Backtraces
    module_function

    def of_threads(threads = Thread.list)
      threads.each { |thread| warn "#{thread.inspect}:", *thread.backtrace.to_a.first(30).map { |line| "  #{line}" } }
    end

    # With gdb, if it is installed.
    def of_process(pid)
      Process.kill(:QUIT, pid)
      sleep 1
      system("gdb", "-p", pid.to_s, "-batch", "-ex", "thread apply all bt 30", out: :err, err: File::NULL)
    rescue Errno::ESRCH
      nil
    end

    # With gdb, if it is installed: whether the main thread is at an instruction of Ruby's own that jumps to itself.
    def stuck_in_ruby?(pid)
      output = IO.popen(["gdb", "-p", pid.to_s, "-batch", "-ex", "x/i $pc", "-ex", "bt 1"], err: File::NULL, &:read)
      output.match?(/^=> (0x\h+)\b.*:\s+jmp\s+\1\b/) && output.match?(/^#0 .* from \S*libruby/)
    rescue Errno::ENOENT
      false
    end

    # Shows them at SIGQUIT from now on.
    def on_quit
      trap("QUIT") { of_threads }
    end
  end
end
