# frozen_string_literal: true

# How specs create collectors, here and in subprocesses: with the liveness from the environment's SPEC_LIVENESS, since
# the suite must pass with freeobj and with mark_bits.
module NewCollector
  # @return [Hash] what SPEC_LIVENESS adds to a collector's options
  def self.liveness
    name = ENV["SPEC_LIVENESS"].to_s
    name.empty? ? {} : { liveness: name.to_sym }
  end

  def new_collector(**options)
    MemprofilerPprof::Collector.new(**NewCollector.liveness, **options)
  end
end
