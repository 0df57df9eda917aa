# frozen_string_literal: true

module MemprofilerPprof
  module RSpec
    # Collects what each example retained and allocated, and lists the greatest at the end. A listener of RSpec's
    # reporter, which hands the text on to whatever formatters there are.
    # @api private
    class Ranking
      # An example, and its objects and bytes, by :allocate and :retain.
      Entry = Struct.new(:name, :location, :objects, :bytes)
      # The lists, by what they are ordered by, with the words for it.
      LISTS = { retain: "retained afterwards", allocate: "allocated" }.freeze
      private_constant :Entry, :LISTS

      # @param top [Integer] how many to list
      # @raise [ArgumentError, TypeError] naming the argument, its value and what is allowed
      def initialize(top)
        @top = Argument.integer(:top, top, from: 1)
        @selection = Testing::Selection.new
        @entries = []
      end

      # @param example [RSpec::Core::Example::Procsy]
      # @param measurement [Testing::Measurement]
      def add(example, measurement)
        objects = {}
        bytes = {}
        Testing::Limit::VALUES.each do |verb, values|
          samples = @selection.of(measurement.samples(verb))
          objects[verb] = samples.sum { |sample| sample.values.fetch(values[:objects]) }
          bytes[verb] = samples.sum { |sample| sample.values.fetch(values[:bytes]) }
        end
        @entries << Entry.new(example.full_description, example.location_rerun_argument, objects, bytes)
      end

      # RSpec calls this after the summary.
      def dump_summary(_notification)
        ::RSpec.configuration.reporter.message("\n#{LISTS.keys.map { |verb| list(verb) }.join("\n\n")}")
      end

      private

      def list(verb)
        entries = @entries.reject { |entry| entry.bytes[verb].zero? }
        greatest = entries.sort_by { |entry| [-entry.bytes[verb], entry.location] }.first(@top)
        return "None of #{@entries.size} has memory #{LISTS[verb]}." if greatest.empty?

        title = "Top #{Testing::Report.objects(greatest.size, "example")} of #{@entries.size} by memory #{LISTS[verb]}:"
        [title, *greatest.map { |entry| line(entry, verb) }].join("\n")
      end

      def line(entry, verb)
        format("  %11s  %17s  %s\n%34s# %s", Testing::Report.bytes(entry.bytes[verb]),
               Testing::Report.objects(entry.objects[verb]), entry.name, "", entry.location)
      end
    end
  end
end
