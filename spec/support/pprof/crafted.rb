# frozen_string_literal: true

module Pprof
  # Profiles that no program writes, ungzipped and quickly generated.
  module Crafted
    module_function

    # @param count [Integer]
    # @return [String] a profile of `count` equal samples of one value
    def samples(count)
      header + ("\x12\x03\x12\x01\x01".b * count)
    end

    # @param count [Integer]
    # @return [String] a profile of `count` samples with different labels
    def labelled(count)
      body = Array.new(count) do |number|
        label = "\x08\x01\x18".b << varint(number + 1)
        sample = "\x12\x01\x01\x1a".b << label.bytesize << label
        "\x12".b << sample.bytesize << sample
      end
      header + body.join
    end

    # @param comments [Array<String>]
    # @return [String] a profile without samples, with only these comments
    def comments(comments)
      strings = comments.map { |text| "\x32".b << varint(text.bytesize) << text }
      numbers = comments.each_index.map { |index| varint(index + 2) }.join
      header + strings.join + "\x6a".b + varint(numbers.bytesize) + numbers
    end

    # @param lines [Integer]
    # @param depth [Integer]
    # @return [String] a stack of `depth` calls, all at one location, which stands for `lines` inlined functions
    def inlined(lines, depth)
      header + field(2, field(1, "\x01".b * depth) + "\x12\x01\x01".b) +
        field(4, "\x08\x01".b + ("\x22\x02\x08\x01".b * lines)) + field(5, "\x08\x01\x10\x01".b)
    end

    # A sample type and a table with the strings "" and "a".
    def header
      "\x0a\x04\x08\x01\x10\x01\x32\x00\x32\x01a".b
    end

    def field(number, bytes)
      ((number << 3) | 2).chr.b << varint(bytes.bytesize) << bytes
    end

    def varint(number)
      bytes = "".b
      while number > 0x7f
        bytes << ((number & 0x7f) | 0x80)
        number >>= 7
      end
      bytes << number
    end
  end
end
