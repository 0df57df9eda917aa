# frozen_string_literal: true

require "json"

# Writes the events of an rspec process, one JSON object per line, to the file named by TEST_RUN_EVENTS: after a crash,
# the file shows what had happened.
class EventFormatter
  RSpec::Core::Formatters.register self, :start, :example_started, :example_passed, :example_failed, :example_pending,
                                   :close

  def initialize(_output)
    @events = File.open(ENV.fetch("TEST_RUN_EVENTS"), "a")
    @events.sync = true
    @process = Process.pid
  end

  def start(notification)
    write(event: "start", count: notification.count)
  end

  def example_started(notification)
    write(event: "started", id: notification.example.id)
  end

  def example_passed(notification)
    finished("passed", notification)
  end

  def example_failed(notification)
    @failures = @failures.to_i + 1
    finished("failed", notification, text: notification.fully_formatted(@failures),
                                     timing: notification.example.metadata[:timing] == true)
  end

  def example_pending(notification)
    finished("pending", notification)
  end

  def close(_notification)
    @events.close
  end

  private

  def finished(event, notification, **more)
    example = notification.example
    write(event: event, id: example.id, file: example.metadata[:rerun_file_path],
          seconds: example.execution_result.run_time, **more)
  end

  # Not in a process forked by an example.
  def write(**event)
    @events.puts(JSON.generate(event)) if Process.pid == @process
  end
end
