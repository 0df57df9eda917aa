# frozen_string_literal: true

module MemprofilerPprof
  module Rack
    # A profile as text for `?debug=1`, as Go writes it: each call path with what it retains, the greatest first.
    #
    #     heap profile: 3: 120 [5: 200] @ heap/100
    #     # retained objects: bytes [allocated objects: bytes] …
    #
    #     3: 120 [5: 200] @ class=String
    #     #	Foo#bar	/app/foo.rb:12
    #     #	<main>	/app/main.rb:3
    # @api private
    class StackText
      # @param profile [Profile]
      # @param order [Symbol] the value to sort by
      def initialize(profile, order)
        @profile = profile
        @order = order == :allocations_size ? 1 : 3
      end

      # @return [String]
      def to_s
        samples = @profile.samples.sort_by { |sample| -sample.values[@order] }
        out = +"heap profile: #{figures(totals)} @ heap/#{@profile.period}\n"
        out << "# retained objects: bytes [allocated objects: bytes], estimated for the whole program\n"
        @profile.comments.each { |comment| out << "# " << comment << "\n" }
        samples.each { |sample| out << "\n" << stack(sample) }
        out
      end

      private

      def totals
        @profile.sample_types.map { |type| @profile.total(type).value }
      end

      def stack(sample)
        labels = sample.labels.map { |name, value| "#{name}=#{value}" }
        frames = sample.stack.map { |frame| "#\t#{frame.name}\t#{frame.file}:#{frame.line}\n" }
        "#{figures(sample.values)} @ #{labels.join(" ")}".rstrip + "\n#{frames.join}"
      end

      def figures((allocations, allocated_bytes, retained, retained_bytes))
        "#{retained}: #{retained_bytes} [#{allocations}: #{allocated_bytes}]"
      end
    end
  end
end
