# frozen_string_literal: true

require "ruby_memprofiler_pprof/stderr_logger"

module MemprofilerPprof
  # While allocations are traced, by whatever means, Ruby 3.1.0 to 3.1.3 and 3.2.0 to 3.2.2 crash when a Ractor is
  # created, and 3.4 may crash when one collects garbage. There, collectors are stopped first. Up to Ruby 3.2 no event
  # says that a Ractor begins, so collectors are told here: `liveness: :freeobj` must know. Elsewhere this does nothing.
  # @api private
  module RactorGuard
    # Is prepended to Ractor's singleton class, so that it runs before Ractor.new. Forwards with names, not `...`: on
    # an M:N thread of Ruby 3.4 that may crash (insns.def `sendforward` keeps the address of another native thread).
    def new(*_arguments, **_keywords, &)
      # A Ractor other than the main one has no collectors: none could be started while it ran.
      stopped = Ractor.current == Ractor.main ? MemprofilerPprof.collectors.select(&:before_ractor) : []
      unless stopped.empty?
        StderrLogger.warn("stopped profiling: Ruby #{RUBY_VERSION} may crash when allocations are traced beside " \
                          "another Ractor; 3.1.4, 3.2.3, 3.3 and 4.0 do not")
      end
      super
    end

    # @!method self.needed?
    #   Looks into the extension's table of quirks.
    #   @return [Boolean] whether this Ruby has one of the bugs

    # @!parse
    #   # Is prepended from Ruby 4.0 on, where windows end before another Ractor begins.
    #   module Windows
    #     def new(*, **) = super
    #   end

    Ractor.singleton_class.prepend(self) if needed? || RUBY_VERSION < "3.3"
    # Until then hooks see nothing of other Ractors.
    Ractor.singleton_class.prepend(Windows) if RUBY_VERSION >= "4.0"
  end
end
