# frozen_string_literal: true

# A job as in Resque, which has no Debian package: without queues, workers and most hooks.
module Resque
  # What was taken from a queue.
  class Job
    attr_reader :queue, :payload

    def initialize(queue, payload)
      @queue = queue
      @payload = payload
    end

    # Returns whether the job was done.
    def perform
      job = Object.const_get(payload["class"].to_s)
      job.before_perform(*payload["args"]) if job.respond_to?(:before_perform)
      job.perform(*payload["args"])
      true
    end
  end
end
