# frozen_string_literal: true

# A collector for specs of the flushers, which only check how often and with what arguments it is flushed.
class FakeCollector
  Profile = Struct.new(:pprof_data, :allocation_samples_count) do
    def empty?
      allocation_samples_count.zero?
    end
  end

  attr_accessor :running
  # The exceptions that the next flushes raise; nil stands for a flush that succeeds.
  attr_reader :errors
  # The options and the thread of each flush.
  attr_reader :flushes

  def initialize(running: true, samples: 1)
    @running = running
    @samples = samples
    @errors = []
    @flushes = []
  end

  def running?
    @running
  end

  def flush(**options)
    @flushes << { options: options, thread: Thread.current }
    error = @errors.shift
    raise error if error

    Profile.new("profile #{@flushes.size}", @samples * 2)
  end
end

# Remembers what was logged, as [severity, message].
class FakeLogger
  attr_reader :messages

  def initialize
    @messages = []
  end

  %i[debug info warn error].each do |severity|
    define_method(severity) { |message| @messages << [severity, message] }
  end

  # The messages of one severity.
  def [](severity)
    @messages.select { |logged, _| logged == severity }.map(&:last)
  end
end
