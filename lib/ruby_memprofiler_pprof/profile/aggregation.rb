# frozen_string_literal: true

require "ruby_memprofiler_pprof/argument"

module MemprofilerPprof
  class Profile
    # Sums over a profile. `type` is the name of a sample type, such as `:retained_size`; by default it is
    # {Contents#default_sample_type}.
    module Aggregation
      # What can be grouped by:
      #
      # - `:method`: functions by name and file; by name alone without a file, and C functions in this gem's profiles
      # - `:line`: lines of files. What a function written in C allocates belongs to the line that calls it
      # - `:file`
      # - `:gem`: by path; `app` for the program's own files, `ruby` for Ruby's and the standard library's
      # - `:class`: of the objects, the label `class`
      GROUPINGS = %i[method line file gem class].freeze
      # What {#top} can sort by.
      ORDERS = %i[flat cumulative].freeze

      # @param type [Symbol, String, SampleType, nil]
      # @return [Estimate] the sum over all samples
      def total(type = nil)
        Estimate.of(native_total(column(type)), difference?)
      end

      # @param by [Symbol] one of {GROUPINGS}
      # @param type [Symbol, String, SampleType, nil]
      # @param sort [Symbol] one of {ORDERS}
      # @param limit [Integer, nil] the most to return
      # @return [Array<Site>] largest first; in a difference, those that have changed most
      # @raise [ArgumentError] if an argument is none of what is allowed
      def top(by: :method, type: nil, sort: :flat, limit: nil)
        Argument.one_of(:by, by, GROUPINGS)
        Argument.one_of(:sort, sort, ORDERS)
        Argument.limit(limit)
        sites = native_top(column(type), by.name).map do |*group, flat, cumulative|
          Site.new(*group, estimate(flat), estimate(cumulative)).freeze
        end
        sites.sort_by! { |site| [-site[sort].value.abs, -site.cumulative.value.abs, site.name, site.file.to_s] }
        limit ? sites.first(limit) : sites
      end

      # The tree of calls from the outermost frame inwards.
      #
      # @param by [Symbol] what a node is, one of {GROUPINGS}; with `:class` there are no calls, only classes
      # @param type [Symbol, String, SampleType, nil]
      # @param classes [Boolean] whether the classes of the objects follow the innermost frames
      # @param min [Numeric] the least part of the total that a node must have, 0..1; in a difference, of all changes
      # @param depth [Integer, nil] the most levels below the root
      # @return [Node] the root, named "total"
      # @raise [ArgumentError] if an argument is none of what is allowed
      def tree(by: :method, type: nil, classes: false, min: 0, depth: nil)
        Argument.one_of(:by, by, GROUPINGS)
        Argument.check(:min, min, "in 0..1") { (0..1).cover?(min) }
        Argument.check(:depth, depth, "an Integer in 0..4294967295 or nil") do
          depth.nil? || (0..4_294_967_295).cover?(depth)
        end

        rows, groups = native_tree(column(type), by.name, classes ? true : false, min, depth || 4_294_967_295)
        build_tree(rows, groups)
      end

      private

      # A node comes after its parent, the root first of all.
      def build_tree(rows, groups)
        nodes = rows.map do |_, group, flat, cumulative|
          name = group ? groups[group] : ["total", nil, nil, nil]
          Node.new(*name, estimate(flat), estimate(cumulative), [])
        end
        rows.each_with_index { |(parent, *), index| nodes[parent].children << nodes[index] if index.positive? }
        nodes.each do |node|
          node.children.sort_by! { |child| [-child.cumulative.value.abs, child.name] }.freeze
          node.freeze
        end
        nodes.first
      end

      def estimate(sum)
        Estimate.of(sum, difference?)
      end
    end
  end
end
