# frozen_string_literal: true

module TestRun
  # The closing report: how long each part took, which files were the slowest, what failed and how to run just that. Its
  # last line counts examples like rspec's own.
  class Summary
    SLOWEST = 10

    # @param queue [Queue] has run
    # @param jobs [Array<Job>] all, including those that could not start
    def initialize(queue, jobs, seconds:)
      @queue = queue
      @jobs = jobs
      @seconds = seconds
      @specs = jobs.grep(SpecJob)
    end

    # @return [Boolean]
    def passed?
      failures.empty? && broken.empty?
    end

    # @return [String]
    def to_s
      [parts, slowest, second_tries, failed, closing].reject(&:empty?).join("\n\n")
    end

    # @return [Array<Array(SpecJob, SpecJob::Failure)>] failures of examples that persist
    def failures
      @specs.flat_map { |job| job.failures.map { |failure| [job, failure] } }
            .reject { |job, failure| retried(job, failure)&.passed? }
    end

    private

    def retried(job, failure)
      @queue.again.find { |again| again.lane == job.lane && again.files == [failure.id] }
    end

    # Jobs with errors outside their examples.
    def broken
      @jobs.reject { |job| ended?(job) && !job.broken? }
    end

    def ended?(job)
      @queue.ended.include?(job)
    end

    def parts
      lines = @specs.group_by(&:lane).map do |lane, jobs|
        part(lane.name, jobs, count(jobs))
      end
      lines += (@jobs - @specs).map { |job| part(job.name, [job], ended?(job) && job.passed? ? "passed" : "failed") }
      lines.join("\n")
    end

    def part(name, jobs, result)
      seconds, cpu = %i[seconds cpu].map { |figure| jobs.sum { |job| job.public_send(figure).to_f } }
      format("%<name>-16s %<seconds>6.0f s  (CPU %<cpu>4.0f s)  %<result>s", name: name, seconds: seconds, cpu: cpu,
                                                                             result: result)
    end

    def slowest
      seconds = @specs.map(&:times).reduce({}) { |sum, times| sum.merge(times) { |_, one, other| one + other } }
      return "" if seconds.empty?

      lines = seconds.max_by(SLOWEST, &:last).map { |file, sum| format("%6.1f s  %s", sum, file) }
      "Slowest files, all lanes together:\n#{lines.join("\n")}"
    end

    def second_tries
      return "" if @queue.again.empty?

      lines = @queue.again.map { |job| "  #{job.passed? ? "passed" : "failed"}: #{job.command_line}" }
      "Tried a second time, alone, since their subject is time:\n#{lines.join("\n")}"
    end

    def failed
      return "" if passed?

      examples = failures.map { |job, failure| "  #{job.lane.prefix}rspec '#{failure.id}'" }
      others = broken.map { |job| "  #{job.command_line}#{" (not run)" unless ended?(job)}" }
      "Failed:\n#{(examples + others).join("\n")}"
    end

    # Like rspec's, with one failure for each job that failed by itself.
    def closing
      failed = failures.size + broken.size
      "Took #{@seconds.to_i / 60} min #{@seconds.to_i % 60} s\n" \
        "#{@specs.sum(&:done)} examples, #{failed} failures, #{@specs.sum(&:pending)} pending"
    end

    def count(jobs)
      "#{jobs.sum(&:done)} of #{jobs.sum(&:planned)} examples, #{jobs.sum { |job| job.failures.size }} failures, " \
        "#{jobs.sum(&:pending)} pending"
    end
  end
end
