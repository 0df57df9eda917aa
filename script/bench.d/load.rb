# frozen_string_literal: true

# Visits the shop at PORT with THREADS browsers for SECONDS, and prints how long each request took as JSON.
#
#   ruby load.rb PORT THREADS SECONDS SEED

require "json"
require_relative "../../spec/apps/shop/visitors"

# A visitor who comes back a few times, always with the same cookie, and looks at the clock. The app's leak is so much
# per visitor; fewer of them keep the process at a size as a real one has.
class TimedVisitor < Visitor
  VISITS = 20

  attr_reader :seconds

  def initialize(port, random)
    @seconds = []
    super { nil }
  end

  def visit_until(deadline)
    VISITS.times { visit if clock < deadline }
  end

  private

  def send_request(request)
    start = clock
    body = super
    @seconds << (clock - start)
    body
  end

  def clock
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

port, threads, seconds, seed = ARGV.map { |argument| Integer(argument) }
deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds

browsers = Array.new(threads) do |number|
  Thread.new do
    random = Random.new((seed * threads) + number)
    took = []
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
      visitor = TimedVisitor.new(port, random)
      visitor.visit_until(deadline)
      took.concat(visitor.seconds)
    end
    took
  end
end
puts JSON.generate(browsers.flat_map(&:value))
