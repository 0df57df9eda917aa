# frozen_string_literal: true

# Workers take jobs, each of which must be done once: they compute, wait, run out of time, fail and are tried again.
require "timeout"

$stdout.sync = true
jobs = SizedQueue.new(20)
done = Queue.new

def work(number)
  case number % 4
  when 0 then Array.new(200) { |item| "job #{number} #{item}" }.sort
  when 1 then sleep(0.003)
  when 2 then Timeout.timeout(0.002) { sleep }
  else raise ArgumentError, "job #{number}"
  end
rescue Timeout::Error, ArgumentError
  nil
end

5.times do
  Thread.new do
    while (number = jobs.pop)
      work(number)
      done << number
    end
  end
end
Thread.new do
  (0..).each { |number| jobs << number }
end
puts
seen = Hash.new(0)
(0..).each do |turn|
  number = done.pop
  seen[number] += 1
  warn "job #{number} was done twice" if seen[number] > 1
  # Those that are late by much more than there are workers were lost.
  warn "job #{turn - 1000} was not done" if turn > 1000 && !seen.delete(turn - 1000)
end
