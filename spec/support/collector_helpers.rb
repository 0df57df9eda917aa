# frozen_string_literal: true

require_relative "new_collector"

# Collectors that do not outlive their example.
module CollectorHelpers
  include NewCollector

  # A collector that is stopped after the example.
  def new_collector(**options)
    super.tap { |collector| collectors << collector }
  end

  # The decoded profile of a block, at rate 1 by default.
  def profile_of(sample_rate: 1.0, **options, &block)
    Pprof.decode(new_collector(sample_rate: sample_rate, **options).profile(&block))
  end

  # Stops the example's collectors and all others that run, and flushes them: that removes the last hooks.
  def stop_collectors
    (collectors | MemprofilerPprof.collectors).each do |collector|
      collector.stop
      collector.flush
    rescue MemprofilerPprof::Error
      # It was never started.
      nil
    end
    collectors.clear
  end

  private

  def collectors
    @collectors ||= []
  end
end
