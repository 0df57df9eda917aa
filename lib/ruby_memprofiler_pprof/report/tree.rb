# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # The calls from the outermost frame inwards.
    class Tree
      include View

      # Which part of the total a call must have to be shown, by default.
      MIN = 0.01

      # @param profile [Profile]
      # @param by [Symbol] one of Profile::Aggregation::GROUPINGS
      # @param type [Symbol, String, Profile::SampleType, nil]
      # @param min [Numeric] see {Profile::Aggregation#tree}
      # @param depth [Integer, nil] how many levels there are at most
      # @raise [ArgumentError] if an argument is none of what is allowed
      def initialize(profile, by: :method, type: nil, min: MIN, depth: nil)
        @by = by
        @type = sample_type(profile, type)
        @root = profile.tree(by: by, type: @type, min: min, depth: depth)
      end

      # @param style [Style]
      # @return [String]
      def to_s(style = PLAIN)
        Text.section(section, style)
      end

      # @return [Hash{Symbol => Object}] nodes, each after its parent, with the number of the parent in the Array
      def to_h
        numbers = {}.compare_by_identity
        nodes = []
        visit do |node, _, parent|
          numbers[node] = nodes.size
          nodes << { code: Codes::CALL, **SiteText.site(node), parent: parent && numbers[parent],
                     flat: SiteText.estimate(node.flat), cumulative: SiteText.estimate(node.cumulative) }
        end
        { type: @type.to_h, by: @by, findings: nodes }
      end

      private

      def summary
        @type.name
      end

      def table
        table = Table.new([["CUM", :right, nil], ["95% INTERVAL", :right, nil], ["", :right, 2], ["", :left, nil],
                           ["CALLS BY #{@by.upcase}", :left, nil]])
        rows = []
        visit { |node, indent| rows << [node, indent] }
        paths = SiteText.paths(rows.map(&:first))
        rows.each do |node, indent|
          table.add([*figures(node.cumulative), SiteText.label(node, paths).map { |name| indent + name }],
                    (:dim if node.cumulative.low_confidence?), code: Codes::CALL)
        end
        table
      end

      # Without recursion: stacks may be thousands of calls deep. An only child is not indented further.
      def visit
        pending = [[@root, 0, nil]]
        while (node, level, parent = pending.pop)
          yield node, "  " * level, parent
          deeper = node.children.size == 1 ? level : level + 1
          node.children.reverse_each { |child| pending << [child, deeper, node] }
        end
      end

      def figures(estimate)
        total = @root.cumulative.value
        [Units.format(estimate.value, @type.unit), SiteText.interval(estimate, @type.unit),
         total.zero? ? "" : Units.percent(estimate.value.fdiv(total)), SiteText.note(estimate)]
      end
    end
  end
end
