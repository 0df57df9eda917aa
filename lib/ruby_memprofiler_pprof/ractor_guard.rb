# frozen_string_literal: true

require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # Ruby 3.1.0 to 3.1.3 and 3.2.0 to 3.2.2 crash when a Ractor is created while allocations are traced, by whatever
  # means. There, collectors are stopped first; elsewhere this does nothing.
  # @api private
  module RactorGuard
    # Comes before Ractor.new.
    def new(...)
      # A Ractor other than the main one has no collectors: none could be started while it ran.
      stopped = Ractor.current == Ractor.main ? MemprofilerPprof.collectors.select(&:before_ractor) : []
      unless stopped.empty?
        StderrLogger.warn("stopped profiling: creating a Ractor while allocations are traced crashes Ruby " \
                          "#{RUBY_VERSION}; 3.1.4, 3.2.3 and later do not have this bug")
      end
      super
    end

    # @return [Boolean] whether this Ruby has the bug
    def self.needed?
      defined?(Ractor) && (("3.1.0".."3.1.3").cover?(RUBY_VERSION) || ("3.2.0".."3.2.2").cover?(RUBY_VERSION))
    end

    Ractor.singleton_class.prepend(self) if needed?
  end
end
