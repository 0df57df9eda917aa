# frozen_string_literal: true

require "rspec/core"
require "rspec/expectations"
require "ruby_memprofiler_pprof/testing"
require "ruby_memprofiler_pprof/rspec/at_most"
require "ruby_memprofiler_pprof/rspec/example_checks"
require "ruby_memprofiler_pprof/rspec/leak_objects"
require "ruby_memprofiler_pprof/rspec/ranking"

module MemprofilerPprof
  # Matchers, metadata and a ranking of the examples by memory: `require "ruby_memprofiler_pprof/rspec"`.
  module RSpec
    # The methods that examples have.
    module Matchers
      # `expect { … }.not_to leak_objects`: that calls of the block do not leave more and more objects behind. See
      # {LeakObjects} for what can follow.
      # @return [LeakObjects]
      def leak_objects
        LeakObjects.new
      end

      # `expect { … }.to retain_at_most(10).objects`: how much of what one call of the block allocates is alive after
      # it. See {AtMost} for what can follow.
      # @param most [Numeric] from 0
      # @return [AtMost]
      def retain_at_most(most)
        AtMost.new(:retain, most)
      end

      # `expect { … }.to allocate_at_most(10).objects`: how much one call of the block allocates. See {AtMost} for what
      # can follow.
      # @param most [Numeric] from 0
      # @return [AtMost]
      def allocate_at_most(most)
        AtMost.new(:allocate, most)
      end
    end

    # Its value is how many examples to rank.
    RANK_VARIABLE = "RUBY_MEMPROFILER_PPROF_RANK_EXAMPLES"

    class << self
      # Measures each example, and says at the end of the run which retained and which allocated most. To be called
      # before the examples are defined, for instance in spec_helper.rb. The last call counts, also if the environment
      # says something else.
      #
      # @param top [Integer] how many to list, from 1
      # @return [void]
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      def rank_examples(top: 10)
        ranking = Ranking.new(top)
        ExampleChecks.ranking = ranking
        ::RSpec.configuration.define_derived_metadata { |metadata| metadata[ExampleChecks::KEY] = true }
        # Not earlier: to ask for the reporter sets it up with the formatters that are configured by then.
        ::RSpec.configuration.before(:suite) do
          last = ranking.equal?(ExampleChecks.ranking)
          ::RSpec.configuration.reporter.register_listener(ranking, :dump_summary) if last
        end
      end

      # @api private
      def install(config, env = ENV)
        config.include(Matchers)
        config.backtrace_exclusion_patterns << %r{/lib/ruby_memprofiler_pprof/(?:testing|rspec)[/.]}
        # Examples that are not measured run without any frame of this gem in their stacks.
        config.define_derived_metadata do |metadata|
          metadata[ExampleChecks::KEY] = true if ExampleChecks.wanted?(metadata)
        end
        config.around(:each, ExampleChecks::KEY) { |example| ExampleChecks.new(example, self).run }
        rank_as_told(env[RANK_VARIABLE].to_s.strip)
      end

      private

      def rank_as_told(text)
        return if text.empty?

        top = Integer(text, exception: false)
        raise ArgumentError, "#{RANK_VARIABLE} must be an Integer from 1, got #{text.inspect}" unless top&.positive?

        rank_examples(top: top)
      end
    end
  end
end

MemprofilerPprof::RSpec.install(RSpec.configuration)
