# frozen_string_literal: true

# Many ways to wait, each of which checks that nothing about it has changed.
require "timeout"

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
def check(name, fine) = fine || warn("not as it should be: #{name}")

def forever(&)
  Thread.new { loop(&) }
end

$stdout.sync = true
forever do
  started = now
  sleep 0.03
  check("sleep", now - started >= 0.0299)
end
forever do
  check("system", system("true"))
  sleep 0.02
end
forever do
  Timeout.timeout(0.02) { sleep }
  check("timeout", false)
rescue Timeout::Error
  nil
end
reader, writer = IO.pipe
forever do
  started = now
  # Not wait_readable, which does more on some Rubies.
  ready = IO.select([reader], nil, nil, 0.02) # rubocop:disable Lint/IncompatibleIoSelectWithFiberScheduler
  check("select", ready.nil? && now - started >= 0.0199)
  writer.write("a" * 1000)
  check("read", reader.read(1000) == "a" * 1000)
end
forever do
  child = fork { exit!(3) }
  _, status = Process.wait2(child)
  check("fork", status.exitstatus == 3)
  sleep 0.05
end
queues = [Queue.new, Queue.new]
forever { queues[1] << (queues[0].pop + 1) }
number = 0
forever do
  queues[0] << (number += 1)
  check("queue", queues[1].pop == number + 1)
  sleep 0.001
end
arrived = 0
trap(:USR1) { arrived += 1 }
forever do
  before = arrived
  Process.kill(:USR1, Process.pid)
  deadline = now + 20
  sleep 0.001 until arrived > before || now > deadline
  check("signal", arrived > before)
  sleep 0.01
end
fiber = Fiber.new { loop { Fiber.yield([1]) } }
puts
loop do
  check("fiber", fiber.resume == [1])
  started = now
  sleep 0.2
  check("main's sleep", now - started >= 0.1999)
end
