# frozen_string_literal: true

require "ruby_memprofiler_pprof/utf8"

module MemprofilerPprof
  # What a process is: names and values such as `release=1.2,region=eu`, which its profiles carry as comments and
  # Pyroscope as labels. The rules are Pyroscope's, which has no quoting.
  # @api private
  module Tags
    NAME = /\A(?!__)[A-Za-z_][A-Za-z0-9_.]*\z/
    VALUE = /\A[^,={}[:cntrl:]]+\z/
    # The most bytes of a name or value.
    MAX_BYTES = 256
    # The rules in words, for messages.
    ALLOWED = "tags such as release=1.2,region=eu: different names of letters, digits, _ and ., and values without " \
              ", = { } that are not empty"
    # The tag that `memprofiler attach` sets: when that was.
    ATTACHED = "attached_at"
    # How a profile's comment has a tag.
    COMMENT = /\Atag\.([\w.]+)=(.*)\z/m

    class << self
      # @param text [String] such as "release=1.2,region=eu"
      # @return [Hash{String => String}] without those that have no value, as from a variable that is not set
      # @raise [ArgumentError] if a part is no pair, or a name comes twice
      def parse(text)
        pairs(text).to_h.reject { |_, value| value.empty? }
      end

      # @param tags [Hash{String, Symbol => String, Symbol}] from Ruby code
      # @return [Hash{String => String}] the same with Strings, frozen
      # @raise [ArgumentError, TypeError] if they are wrong, or a Symbol and a String are the same name
      def cast(tags)
        raise TypeError unless tags.is_a?(Hash)

        cast = tags.to_h { |name, value| [text(name, NAME), text(value, VALUE)] }
        raise ArgumentError if cast.size < tags.size

        cast.freeze
      end

      # @param comments [Array<String>] of a profile
      # @return [Hash{String => String}] without those that have several values, as in a merged profile
      def of(comments)
        pairs = comments.filter_map { |comment| comment.match(COMMENT)&.captures }.uniq
        pairs.group_by(&:first).values.select { |found| found.size == 1 }.to_h(&:first)
      end

      # @param tags [Hash{String => String}]
      # @return [String] for people: "release=1.2, region=eu"
      def format(tags)
        tags.map { |name, value| "#{name}=#{value}" }.join(", ")
      end

      private

      def pairs(text)
        pairs = text.split(",", -1).map { |part| part.split("=", 2).map(&:strip) }
        raise ArgumentError unless pairs.all? { |pair| pair.size == 2 } && pairs.uniq(&:first).size == pairs.size

        pairs
      end

      def text(value, pattern)
        text = value.is_a?(Symbol) ? value.name : value
        raise TypeError unless text.is_a?(String)

        text = UTF8.encode(text)
        raise ArgumentError unless text.bytesize <= MAX_BYTES && pattern.match?(text)

        -text
      end
    end
  end
end
