# frozen_string_literal: true

require "ruby_memprofiler_pprof/cli/top/view"

module MemprofilerPprof
  class CLI
    class Top < ProfileCommand
      # The contents of the screen if CPU time is watched: that of the last intervals together, since a single one has
      # few samples.
      class CPUView < View
        # How many intervals are added up.
        WINDOW = 10
        private_constant :WINDOW

        GROUPINGS = (View::GROUPINGS - [:class]).freeze
        KEYS = View::KEYS.except("w", "m").freeze
        HELP = "q quit  p pause  Left/Right sort  Tab line, method, ...  a app  / filter  Up/Down scroll"

        # @param options [Hash] as for {View#initialize}
        def initialize(heading, help: HELP, **options, &narrow)
          super
          @intervals = []
        end

        # @param profile [Profile] of CPU time in the newest interval
        def profile=(profile)
          @intervals = [*@intervals, profile].last(WINDOW)
          super(Profile.merge(@intervals))
          # A sum does not say the process.
          @totals = MemprofilerPprof::Report::Totals.new(profile)
        end

        private

        def report = MemprofilerPprof::Report::CPUActivity
        # A sum has the time of the oldest.
        def time = @intervals.last&.time
      end
    end
  end
end
