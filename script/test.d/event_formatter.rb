# frozen_string_literal: true

require "json"

# Writes what happens in a process of rspec, one JSON object a line, to the file that TEST_RUN_EVENTS names: what is not
# there any more after a crash has not happened.
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

  # Not in a process that an example has forked.
  def write(**event)
    @events.puts(JSON.generate(event)) if Process.pid == @process
  end
end
