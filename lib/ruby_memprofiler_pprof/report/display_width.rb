# frozen_string_literal: true

module MemprofilerPprof
  module Report
    # How many columns of a terminal a text takes: 王 takes two, é takes one even if it is written as e and an accent,
    # and an emoji takes two, however many characters it is joined from.
    #
    # Ruby knows clusters and emoji, but not Unicode's East_Asian_Width. Reline does, but from Ruby 4.0 on it is a gem
    # that Bundler hides from programs whose Gemfile does not have it.
    #
    # @api private
    module DisplayWidth
      # What is wide by itself: East_Asian_Width W and F (Unicode 15.1), whole blocks where only unassigned characters
      # are not, and what is an emoji by default.
      WIDE = /[\u1100-\u115F\u2329\u232A\u2E80-\u303E\u3041-\u4DBF\u4E00-\uA4CF\uA960-\uA97C\uAC00-\uD7A3]|
              [\uF900-\uFAFF\uFE10-\uFE19\uFE30-\uFE6B\uFF01-\uFF60\uFFE0-\uFFE6]|
              [\u{16FE0}-\u{18DFF}\u{1AFF0}-\u{1B2FF}\u{1F200}-\u{1F265}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/x
      # What follows a narrow character and widens it: the selector that makes an emoji of ❤, the marks of ﾊﾞ and ﾊﾟ.
      WIDENED = /.[\uFE0F\uFF9E\uFF9F]/
      # Marks without a character to stand on, and what is never visible.
      INVISIBLE = /\A[\p{Mn}\p{Me}\p{Cf}]+\z/
      private_constant :WIDE, :WIDENED, :INVISIBLE

      module_function

      # @param text [String] without control characters
      # @return [Integer]
      def of(text)
        text.ascii_only? ? text.size : text.each_grapheme_cluster.sum { |cluster| of_cluster(cluster) }
      end

      # @return [String] the text, and spaces up to that width
      def ljust(text, width)
        text + padding(text, width)
      end

      # @return [String] spaces up to that width, and the text
      def rjust(text, width)
        padding(text, width) + text
      end

      # @return [String] as much of the text's beginning as fits
      def first(text, width)
        clusters(text.each_grapheme_cluster, width).join
      end

      # @return [String] as much of the text's end as fits
      def last(text, width)
        clusters(text.grapheme_clusters.reverse, width).reverse.join
      end

      def padding(text, width)
        " " * [width - of(text), 0].max
      end

      def clusters(clusters, width)
        clusters.take_while { |cluster| (width -= of_cluster(cluster)) >= 0 }
      end

      def of_cluster(cluster)
        return 0 if INVISIBLE.match?(cluster)

        WIDE.match?(cluster) || WIDENED.match?(cluster) ? 2 : 1
      end
    end
  end
end
