# frozen_string_literal: true

require "ruby_memprofiler_pprof/by_pid"

module MemprofilerPprof
  module ByPid
    # What the limits on another process's resources leave to it. Ruby ends a process that may have no more addresses,
    # and one whose descriptors are all in use can open nothing, not even what the profiler is taken away with.
    # @api private
    class Limits
      # Of addresses. The library reserves 50, and malloc asks for 134 at once for a thread's arena. Programs that had
      # 168 left were profiled, some that had 134 were ended.
      LEAST_MEGABYTES = 200
      # The profiler itself has one, and more while it loads and answers.
      LEAST_DESCRIPTORS = 8
      private_constant :LEAST_MEGABYTES, :LEAST_DESCRIPTORS

      # @param subject [Subject]
      def initialize(subject)
        @subject = subject
      end

      # @return [void]
      # @raise [Error] if too little is left for the profiler
      def check
        least(megabytes, LEAST_MEGABYTES, "MB of addresses (ulimit -v)", "as")
        least(descriptors, LEAST_DESCRIPTORS, "file descriptors (ulimit -n)", "nofile")
      end

      # @return [Integer, nil] how many more files the process may open; nil for any number
      def descriptors
        most = limit("Max open files") or return
        # Some may be above the limit, which was lowered since.
        [most - @subject.descriptors.count { |number| number < most }, 0].max
      end

      private

      # @return [Integer, nil] how many the process's address space may grow by; nil for any number
      def megabytes
        most = limit("Max address space") or return
        used = Integer(@subject.read("status")[/^VmSize:\s*(\d+) kB$/, 1] || 0) * 1024
        [most - used, 0].max / 1_000_000
      end

      # @return [Integer, nil] nil for "unlimited"
      def limit(name)
        @subject.read("limits")[/^#{name} +(\d+)/, 1]&.then { |number| Integer(number) }
      end

      def least(left, needed, what, option)
        return if left.nil? || left >= needed

        raise Error, "process #{@subject.pid} has #{left} #{what} left, and the profiler needs #{needed}: start " \
                     "it with more, or raise the limit by prlimit --pid #{@subject.pid} --#{option}=NUMBER"
      end
    end
  end
end
