# frozen_string_literal: true

module MemprofilerPprof
  class CLI
    # The option --by-tag of commands that show each value of a tag (see {Tags}) by itself.
    module ByTag
      private

      def define_by_tag(parser)
        parser.on("--by-tag NAME", "a section for each value of this tag, such as release") { |name| @by_tag = name }
      end

      # @param items [Array]
      # @param tags [Array<Hash{String => String}>] of each item
      # @return [Hash{String, nil => Array}] the items by the tag's value; nil, for those that lack it, is last
      # @raise [Failure] if none has it
      def by_tag(items, tags)
        check_by_tag(tags.flat_map(&:keys).uniq.sort)
        groups = items.group_by.with_index { |_, index| tags[index][@by_tag] }
        missing = groups.delete(nil)
        groups.sort.to_h.merge(missing ? { nil => missing } : {})
      end

      def check_by_tag(names)
        return if names.include?(@by_tag)

        others = names.empty? ? "have no tags" : "have the tags #{names.join(", ")}"
        raise Failure, "no profile has the tag #{@by_tag}; they #{others}"
      end

      # @param value [String, nil] of the tag
      # @return [Hash{Symbol => Object}] the members of a {Report::Section} that say so, if --by-tag was given
      def group(value, data = {})
        return { data: data } unless @by_tag

        { group: value ? "#{@by_tag}=#{value}" : "without #{@by_tag}", data: { tag: { @by_tag => value }, **data } }
      end
    end
  end
end
